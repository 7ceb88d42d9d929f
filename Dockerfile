# docker run -v tabmux:/var/lib/tabmux --shm-size=1g --security-opt seccomp=unconfined tabmux
# (Chromium's own sandbox makes user namespaces, which Docker's default profile forbids.)
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium fonts-liberation \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home tabmux \
    && install -d -o tabmux -g tabmux -m 0700 /var/lib/tabmux

WORKDIR /opt/tabmux
COPY constraints.txt pyproject.toml ./
COPY clients/python clients/python
COPY service service
RUN pip install --no-cache-dir --constraint constraints.txt ./clients/python .

ENV TABMUX_STATE_DIR=/var/lib/tabmux
USER tabmux
VOLUME /var/lib/tabmux
ENTRYPOINT ["tabmuxd"]
