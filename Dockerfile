# The one image of Attestry: `serve`, `ingest` and the jobs are its arguments.
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t attestry .
#
# Images can come from a mirror: GO_IMAGE builds, BASE_IMAGE is what the program
# stands on (scratch, or one without a shell, as gcr.io/distroless/static).
ARG GO_IMAGE=golang:1.26.8
ARG BASE_IMAGE=scratch

FROM ${GO_IMAGE} AS build
WORKDIR /src
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN make build VERSION="${VERSION}" && \
    mkdir -p /out/data /out/etc/ssl/certs && \
    mv bin/attestry /out/ && \
    cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/

FROM ${BASE_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Attestry" \
      org.opencontainers.image.description="An archive of Wormhole attestations" \
      org.opencontainers.image.source="https://github.com/attestry/attestry" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

COPY --from=build /out/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /out/attestry /attestry

# PORT is set anew by platforms that choose it. Nothing is written but the embedded
# store, so that the root may be read-only.
ENV PORT=8080 ATTESTRY_DATA_DIR=/data ATTESTRY_LOG_FORMAT=json
VOLUME /data
EXPOSE 8080
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=8s --start-period=30s CMD ["/attestry", "status"]
ENTRYPOINT ["/attestry"]
CMD ["serve"]
