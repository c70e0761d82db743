module github.com/sundial-mq/sundial/compat/mqadmin

go 1.26
