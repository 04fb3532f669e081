# The daemon alone: no Spark, no Java, none of the test tools.
FROM python:3.11-slim AS build
# The build has no repository to ask for its tag: docker build --build-arg RINGLEADER_VERSION=1.2.3
ARG RINGLEADER_VERSION
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

# Beside it the demo's producer and members, for the cluster profile of docker-compose.yml.
FROM python:3.11-slim AS demo
COPY . /src
RUN pip install --no-cache-dir --constraint /src/constraints.txt "/src[clients]" \
    && useradd --system --uid 10001 ringleader \
    && install --directory --owner ringleader /out /src/.cache
USER ringleader
WORKDIR /src
ENTRYPOINT ["python", "-m"]

FROM python:3.11-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt /wheels/*.whl \
    && rm -r /wheels /tmp/constraints.txt \
    && useradd --system --uid 10001 ringleader \
    && install --directory --owner ringleader --mode 0700 /data
USER ringleader
VOLUME /data
EXPOSE 9092
# Clients are told the advertised address, so it must be one that they can reach: see docker-compose.yml.
ENTRYPOINT ["ringleader"]
# Whoever reaches the port may do everything: publish it on loopback, or in a network that lets nobody else in.
CMD ["serve", "--listen", "0.0.0.0:9092", "--allow-plaintext", "--data-dir", "/data"]
