# One image; the command decides the role. The client needs no image: it is `pip install rlvitals` in the job.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md constraints.txt ./
COPY client client
COPY monitor monitor
COPY dashboard dashboard
COPY migrations migrations
COPY docs/runbooks docs/runbooks
RUN python -m venv /opt/rlvitals \
 && /opt/rlvitals/bin/pip install --no-cache-dir --constraint constraints.txt '.[server,postgres]'

FROM python:3.12-slim
COPY --from=build /opt/rlvitals /opt/rlvitals
# By number, so that whoever runs it sees that it is not root, and can give it a secret to read.
RUN useradd --uid 10001 --create-home --home-dir /var/lib/rlvitals rlvitals
ENV PATH=/opt/rlvitals/bin:$PATH RLVITALS_HOME=/var/lib/rlvitals RLVITALS_DATA=/var/lib/rlvitals/data
USER 10001
VOLUME /var/lib/rlvitals
EXPOSE 8642
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8642/readyz', timeout=2)"
STOPSIGNAL SIGINT
CMD ["rlvitals", "serve", "--host", "0.0.0.0"]
