# SPDX-License-Identifier: Apache-2.0
# title: go builds and tests without a network
# needs: go
# timeout: 120
export GOFLAGS=-mod=mod GOPATH=/tmp/gopath GOCACHE="$PWD/cache" GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0
go build -o prog . && ./prog; echo $?
go vet . ; echo "vet $?"
