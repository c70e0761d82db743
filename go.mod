module github.com/sundial-mq/sundial

go 1.26
