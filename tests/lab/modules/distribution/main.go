// The CNCF distribution registry, with its own handlers, on a free port of this machine.
//
// Its own main package also has storage in clouds, tracing and log hooks, which take minutes to build.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"

	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

// Argument: a configuration, as the registry documents it. Its address goes to standard output.
func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	config, err := configuration.Parse(file)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: handlers.NewApp(context.Background(), config)}
	fmt.Println(listener.Addr())
	if config.HTTP.TLS.Certificate != "" {
		panic(server.ServeTLS(listener, config.HTTP.TLS.Certificate, config.HTTP.TLS.Key))
	}
	panic(server.Serve(listener))
}
