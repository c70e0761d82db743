module github.com/sundial-mq/sundial/bench

go 1.26
