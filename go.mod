module github.com/sundial-mq/sundial

go 1.26.0

require golang.org/x/sys v0.50.0
