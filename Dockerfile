# A policy behind HTTP. Every step is a script of deploy/, which tests run on the machine itself; this image
# was never built where the tests run.
FROM rust:1.89-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3 python3-dev python3-venv
COPY . /source
RUN sh /source/deploy/build.sh /source /wheels

FROM python:3.13-slim-bookworm
COPY --from=build /wheels /wheels
COPY deploy/install.sh deploy/start.sh /deploy/
RUN sh /deploy/install.sh /wheels /opt/fliphat \
    && useradd --uid 10001 --no-create-home fliphat \
    && install --directory --owner fliphat --mode 0700 /data
ENV PATH=/opt/fliphat/bin:$PATH FLIPHAT_STORE=/data/store
USER 10001
VOLUME /data
EXPOSE 8377
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8377/readyz', timeout=3)"]
# Requests under way are answered before the process ends: give it longer than `wait` of the limits.
STOPSIGNAL SIGTERM
ENTRYPOINT ["sh", "/deploy/start.sh"]
