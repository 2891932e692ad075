# A static image: one binary, no shell, no user but 65532.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package gatepost && cp target/release/gatepost /gatepost

FROM scratch
COPY --from=build /gatepost /gatepost
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/gatepost"]
