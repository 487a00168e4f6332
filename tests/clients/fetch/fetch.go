// SPDX-License-Identifier: Apache-2.0
// fetch URL [CA-FILE]: the protocol and status, then the body.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) > 2 {
		pem, err := os.ReadFile(os.Args[2])
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			fmt.Fprintln(os.Stderr, "no certificate in", os.Args[2])
			os.Exit(2)
		}
		http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	r, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s %d %s\n%s", r.Proto, r.StatusCode, r.Header.Get("X-Seen"), body)
	if r.StatusCode >= 400 {
		os.Exit(1)
	}
}
