# The programs on Debian 12, for any x86-64 processor with AVX2:  docker build -t rankine .
# docker run --rm -v "$PWD:/data" -w /data rankine train --data folder:photos --out runs/first
FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
COPY . /rankine
RUN cd /rankine && make OPTIONS="-DRK_NATIVE=OFF -DRK_CUDA=OFF"
ENV PATH=/rankine/build/bin:$PATH
