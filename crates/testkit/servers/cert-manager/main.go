// Command cert-manager is cert-manager as tests need it: its own controllers for Certificates whose issuer is self-signed or a
// CA in a Secret, as one process on the API server that a kubeconfig names. A line `ready` on standard error says when they run.
//
// Its CRDs must be installed, and the namespace must exist that ClusterIssuers take their Secrets from.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"

	// Each of these makes itself known to the package above.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	var options controller.ContextOptions
	flag.StringVar(&options.Kubeconfig, "kubeconfig", "", "file that names the API server and the user")
	flag.StringVar(&options.ClusterResourceNamespace, "namespace", "cert-manager", "where ClusterIssuers keep their Secrets")
	flag.DurationVar(&options.CertificateRequestMinimumBackoffDuration, "backoff", time.Hour, "rest after the first failure")
	flag.DurationVar(&options.CertificateRequestMaximumBackoffDuration, "longest-backoff", 32*time.Hour, "longest rest")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// Every controller first says what it looks at; only then may the shared watches begin.
func run(ctx context.Context, options controller.ContextOptions) error {
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	ended := make(chan error)
	var begin []func()
	for name, build := range controller.Known() {
		built, err := build(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		begin = append(begin, func() { ended <- fmt.Errorf("%s ended: %v", name, built.Run(1, ctx)) })
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	for _, controller := range begin {
		go controller()
	}
	fmt.Fprintln(os.Stderr, "ready")
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
