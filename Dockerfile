# One image for each process: docker build --target admission -t headgate-admission .
#
#   python ─► installer ─► dependencies of each ─┐
#      │          └──────► code ─────────────────┤
#      └─► process ──────────────────────────────┴─► admission · scheduler · worker · notifier · operator · nats
#
# An image holds Python, what its process imports (a dependency group of pyproject.toml, with the hashes of uv.lock) and
# our code. It needs no builder but Docker's own, keeps no installer and no cache, and runs as nobody in particular on a
# root that may be read-only: /tmp is all it writes to.
ARG PYTHON=python:3.14-slim
ARG NATS=nats:2.15

# --- made of -----------------------------------------------------------------------------------------------------------

FROM ${PYTHON} AS installer
ENV UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1 UV_LINK_MODE=copy UV_FROZEN=1 UV_SYSTEM_CERTS=1
WORKDIR /src
COPY .bootstrap.txt ./
RUN python3 -m venv /installer \
    && /installer/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: \
        --require-hashes --requirement .bootstrap.txt
ENV PATH=/installer/bin:$PATH
COPY pyproject.toml uv.lock ./
COPY contracts/pyproject.toml contracts/
COPY libs/client/pyproject.toml libs/client/
COPY libs/pipeline/pyproject.toml libs/pipeline/
# All wheels are fetched once, into a cache that the stages below start from. The installer's own came past that cache.
RUN UV_PROJECT_ENVIRONMENT=/installer uv sync --inexact --no-install-workspace --reinstall-package uv --only-group build \
        --only-group admission --only-group scheduler --only-group worker --only-group notifier \
        --only-group operator
ENV UV_OFFLINE=1 UV_NO_INSTALL_WORKSPACE=1 UV_PYTHON=python3 UV_PROJECT_ENVIRONMENT=/opt/headgate PYTHONHASHSEED=0
# Our code has a folder of its own, whatever the version of the Python that finds it there. `compile FOLDER` makes the
# bytecode of what is new in it, by one process in one order: only so do two builds have the same bytes.
RUN uv venv --quiet /opt/headgate \
    && cd /opt/headgate/lib/python3.*/site-packages \
    && echo /opt/headgate/code > headgate.pth \
    && touch --date @0 /installer/compiled \
    && printf '%s\n' '#!/bin/sh' \
        'find "$1" -name "*.py" -newer /installer/compiled | LC_ALL=C sort > /installer/new' \
        'python3 -m compileall -qq --invalidation-mode unchecked-hash -i /installer/new || echo "not all is Python"' \
        'touch /installer/compiled' > /installer/bin/compile \
    && chmod +x /installer/bin/compile

# What all services need is brought and compiled once; each adds what it needs besides, and loses what it does not.
FROM installer AS service-dependencies
RUN uv sync --only-group service && compile /opt/headgate/lib

FROM service-dependencies AS admission-dependencies
RUN uv sync --only-group admission && compile /opt/headgate/lib

FROM service-dependencies AS scheduler-dependencies
RUN uv sync --only-group scheduler && compile /opt/headgate/lib

FROM service-dependencies AS worker-dependencies
RUN uv sync --only-group worker && compile /opt/headgate/lib

FROM service-dependencies AS notifier-dependencies
RUN uv sync --only-group notifier && compile /opt/headgate/lib

FROM installer AS operator-dependencies
RUN uv sync --only-group operator && compile /opt/headgate/lib

# What every job's environment is made of, by the hashes of the lock that a package starts with: no build needs a network.
FROM installer AS wheels
COPY services/worker/build/toolchain toolchain
RUN uv export --quiet --no-config --project toolchain --no-emit-project --all-groups --no-annotate --no-header \
        --output-file wheels.txt \
    && /installer/bin/pip download -qq --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: \
        --require-hashes --requirement wheels.txt --dest /wheels

# The wheels of `make wheels`, byte by byte but for their times (docs/adr/0022).
FROM installer AS code
COPY . .
RUN uv build --quiet --wheel --no-build-isolation --all-packages --out-dir /wheels \
    && /installer/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --target /code \
        /wheels/*.whl \
    && rm -rf /code/bin \
    && compile /code

# --- what they share ---------------------------------------------------------------------------------------------------

FROM ${PYTHON} AS process
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin headgate
# Bytecode is there already, and a read-only root takes no more. Nothing is imported from where a job may write.
ENV PATH=/opt/headgate/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1 \
    HEADGATE_HTTP_HOST=0.0.0.0 HEADGATE_HTTP_PORT=8080
LABEL org.opencontainers.image.vendor="Headgate" org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /opt/headgate
USER 10001:10001
STOPSIGNAL SIGTERM

FROM process AS service
EXPOSE 8080
# It asks the service itself, and takes any answer but 200 for a no. Without `site` Python starts in half the time.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["python3", "-ISc", "\
import http.client, os, sys; \
asked = http.client.HTTPConnection('127.0.0.1', int(os.environ['HEADGATE_HTTP_PORT']), timeout=2); \
asked.request('GET', '/readyz'); \
sys.exit(asked.getresponse().status != 200)"]

# --- the images --------------------------------------------------------------------------------------------------------

FROM service AS admission
LABEL org.opencontainers.image.title="headgate-admission" \
    org.opencontainers.image.description="Headgate: takes jobs in, and tells where they stand"
COPY --from=admission-dependencies /opt/headgate /opt/headgate
COPY --from=code /code /opt/headgate/code
ENTRYPOINT ["python", "-m", "services.admission"]

FROM service AS scheduler
LABEL org.opencontainers.image.title="headgate-scheduler" \
    org.opencontainers.image.description="Headgate: decides what runs, and when"
COPY --from=scheduler-dependencies /opt/headgate /opt/headgate
COPY --from=code /code /opt/headgate/code
ENTRYPOINT ["python", "-m", "services.scheduler"]

FROM service AS worker
LABEL org.opencontainers.image.title="headgate-worker" \
    org.opencontainers.image.description="Headgate: runs jobs; start from it for pipelines of your own"
COPY --from=worker-dependencies /opt/headgate /opt/headgate
COPY --from=wheels /wheels /opt/headgate/wheels
COPY --from=code /code /opt/headgate/code
ENTRYPOINT ["python", "-m", "services.worker"]

FROM service AS notifier
LABEL org.opencontainers.image.title="headgate-notifier" \
    org.opencontainers.image.description="Headgate: streams, and the dashboard"
COPY --from=notifier-dependencies /opt/headgate /opt/headgate
COPY --from=code /code /opt/headgate/code
ENTRYPOINT ["python", "-m", "services.notifier"]

FROM process AS operator
LABEL org.opencontainers.image.title="headgate-operator" \
    org.opencontainers.image.description="Headgate: the command headgate, for migrations and for people"
COPY --from=operator-dependencies /opt/headgate /opt/headgate
COPY --from=code /code /opt/headgate/code
# A new volume takes its owner from the folder it is first mounted on.
USER root
RUN install --directory --owner=10001 --group=10001 /state
USER 10001:10001
ENV HEADGATE_STATE=/state
ENTRYPOINT ["python", "-m", "libs.cli"]

# For compose alone: the image of nats-server holds the server and nothing that could ask whether it is well. Kubernetes
# asks from outside.
FROM ${NATS} AS nats-server

FROM process AS nats
LABEL org.opencontainers.image.title="headgate-nats" \
    org.opencontainers.image.description="Headgate: nats-server, and what asks whether it is well"
COPY --from=nats-server /nats-server /usr/local/bin/nats-server
USER root
RUN install --directory --owner=10001 --group=10001 /data
USER 10001:10001
HEALTHCHECK --interval=2s --timeout=5s --start-period=60s --retries=5 CMD ["python3", "-ISc", "\
import http.client, sys; \
asked = http.client.HTTPConnection('127.0.0.1', 8222, timeout=4); \
asked.request('GET', '/healthz?js-server-only=true'); \
sys.exit(asked.getresponse().status != 200)"]
ENTRYPOINT ["nats-server"]
