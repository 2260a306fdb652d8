#!/bin/sh
# Builds the OpenTelemetry Collector and Jaeger that the service tests run, and fetches Debian's
# Prometheus where apt is there; into a cache outside the checkout:
#
#   ${SEALTRACE_SERVICES_CACHE:-$HOME/.cache/sealtrace-services}
#
# Needs Go 1.26 or later. From an empty cache it takes about ten minutes on two cores; what is there
# is not built again. The collector is named after the digest of its manifest.
set -eu

root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
cache=${SEALTRACE_SERVICES_CACHE:-$HOME/.cache/sealtrace-services}
manifest=$root/collector-config/builder-config.yaml
builder_version=v0.161.0
jaeger_version=v1.76.0 # the same commit as Jaeger 2.13.0, under the only path the Go module proxy serves
digest=$(sha256sum "$manifest" | cut -c1-12)
collector=$cache/otelcol-$digest
jaeger=$cache/jaeger-$jaeger_version
prometheus=$cache/prometheus

mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-buildvcs=false

if [ ! -x "$collector" ]; then
    GOBIN=$work/bin go install "go.opentelemetry.io/collector/cmd/builder@$builder_version"
    cp "$manifest" "$work/builder-config.yaml"
    (cd "$work" && ./bin/builder --config builder-config.yaml)
    mv "$work/_build/otelcol-sealtrace" "$collector"
fi

if [ ! -x "$jaeger" ]; then
    mkdir "$work/jaeger"
    cd "$work/jaeger"
    go mod init sealtrace.invalid/jaeger
    go get "github.com/jaegertracing/jaeger/cmd/jaeger@$jaeger_version"
    go build -o "$jaeger.new" github.com/jaegertracing/jaeger/cmd/jaeger
    mv "$jaeger.new" "$jaeger"
fi

if [ ! -x "$prometheus" ] && command -v apt-get >/dev/null; then
    mkdir -p "$work/prometheus"
    cd "$work/prometheus"
    if apt-get download prometheus && dpkg -x prometheus_*.deb .; then
        mv usr/bin/promtool "$cache/promtool"
        mv usr/bin/prometheus "$prometheus"
    fi
fi

ls -l "$collector" "$jaeger" "$prometheus" 2>/dev/null || true
