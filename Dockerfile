# An image with the static program and nothing else:
#
#   cargo xtask dist
#   docker build -t fathom:0.1.0 .
#   docker run --rm -v /srv/data:/data fathom:0.1.0 quick
#
# Results go to the current folder, which is the volume. No user is named: the owner of the volume decides.
# docs/install.md has more.
FROM scratch
COPY target/dist/fathom /fathom
WORKDIR /data
ENTRYPOINT ["/fathom"]
CMD ["--help"]
