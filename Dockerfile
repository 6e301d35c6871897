# The runtime as an image: what it runs was fetched by hash, patched and proven in
# this very build. BASE needs Python 3.11 or newer with venv, and Debian's packages.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS tools
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git tini \
 && rm -rf /var/lib/apt/lists/*
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1

# What will run, and nothing to install more with.
FROM tools AS environment
WORKDIR /source
COPY requirements/ requirements/
RUN python3 -m venv /opt/tools \
 && /opt/tools/bin/python -m pip install --quiet --require-hashes -r requirements/dev.txt
RUN python3 -m venv /opt/image \
 && /opt/image/bin/python -m pip install --quiet --require-hashes -r requirements/image.txt
RUN python3 -m venv --without-pip /opt/vectorless-rag \
 && /opt/tools/bin/python -m pip --python /opt/vectorless-rag/bin/python \
    install --quiet --compile --require-hashes -r requirements/runtime.txt

# The upstream: from vendor/ where it lies there, else through pip, by hash either way.
FROM environment AS build
COPY . .
# Another value builds again from here on: the same commit must give the same bytes.
ARG AGAIN=
RUN PYTHONPATH=src /opt/tools/bin/python -m vectorless_rag.upstream build /opt/pageindex \
 && /opt/tools/bin/python -m hatchling build -t wheel -d /tmp/wheel \
 && /opt/tools/bin/python -m pip --python /opt/vectorless-rag/bin/python \
    install --quiet --compile --no-deps --no-index /tmp/wheel/*.whl \
 && /opt/image/bin/cyclonedx-py environment --output-reproducible \
    --output-file /opt/vectorless-rag/sbom.cdx.json /opt/vectorless-rag/bin/python

# A series that proves nothing, or a program that fails its tests, ends the build here.
FROM build AS proven
ENV PYTHONPATH=/source/src
RUN /opt/tools/bin/python scripts/test_pageindex_patch.py /opt/pageindex
RUN /opt/tools/bin/python -m vectorless_rag.upstream check --repeat 1 --no-changes
# What pytest is told to run; CI, which has run them all outside, names a few.
ARG SUITE=@tests/provider-free.txt
RUN mkdir -p build && ln -s /opt/pageindex build/pageindex \
 && /opt/tools/bin/python -m pytest -q -n 2 ${SUITE}
RUN touch /opt/vectorless-rag/proven

FROM ${BASE} AS final
COPY --from=tools /usr/bin/tini-static /usr/bin/tini
COPY --from=proven /opt/vectorless-rag /opt/vectorless-rag
COPY --from=proven /opt/pageindex /opt/pageindex
RUN mkdir /data && chown 10001:10001 /data
# With a read-only root and no /tmp, temporary folders are made here.
WORKDIR /data
VOLUME /data
ENV PATH=/opt/vectorless-rag/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    VECTORLESS_RAG_BUILD_DIR=/opt/pageindex \
    VECTORLESS_RAG_DATA_DIR=/data
USER 10001:10001
HEALTHCHECK --interval=1m --timeout=30s CMD ["vectorless-rag", "upstream", "verify"]
ENTRYPOINT ["tini", "--", "vectorless-rag"]
CMD ["--help"]
