#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries every path and method of openapi.yaml on a collector with --http-keys, for smoke/http_keys.sh.

http_probe.py PORT CA READ_TOKEN WRITE_TOKEN [HOST JOB]

Without a token, with an unknown one, with the read token in place of the write token, with a token in the URL, over plain
HTTP, and from the page of another origin. Prints a line for each answer that should have been another, and how many
requests were made; exit status 1 if there was one. A new route is tried without a new line here.
"""
import http.client
import json
import ssl
import sys
import time

import yaml

TRIED = ("get", "head", "post", "put", "delete", "patch", "options")
NOBODY = "lockstep_" + 64 * "0"


def main(port, ca, read, write, host="h0", job="j"):
    trust = ssl.create_default_context(cafile=ca)
    tried, wrong = 0, []

    def ask(method, path, headers, expected, why):
        nonlocal tried
        while True:
            c = http.client.HTTPSConnection("127.0.0.1", int(port), context=trust, timeout=60)
            c.request(method.upper(), path, body="{}" if method == "post" else None, headers=headers)
            status = c.getresponse().status
            c.close()
            if status != 429 or 429 in expected:
                break
            time.sleep(1)  # the rate of unknown tokens
        tried += 1
        if status not in expected:
            wrong.append("%s %s, %s: %d, not %s" % (method.upper(), path, why, status, expected))

    with open(sys.path[0] + "/../../web/api/openapi.yaml", encoding="utf-8") as f:
        api = yaml.safe_load(f)
    values = {"job": job, "host": host, "id": "F-0000", "step": "1", "metric": "m"}
    for path, methods in api["paths"].items():
        for method in TRIED:
            says = methods.get(method, methods.get("get") if method == "head" else None)
            url = path.format(**values)
            if url.endswith("/series"):
                url += "?metric=m" if "/jobs/" in url else ""
            json_type = {"Content-Type": "application/json"} if method == "post" else {}
            bearer = dict(json_type, Authorization="Bearer " + read)
            if says is None:
                ask(method, url, json_type, (405,), "no such method")
                continue
            if says.get("security") == []:
                continue
            ask(method, url, json_type, (401,), "no token")
            ask(method, url, dict(json_type, Authorization="Bearer " + NOBODY), (401,), "an unknown token")
            ask(method, url, dict(json_type, Authorization="Basic " + read), (401,), "another scheme")
            ask(method, url, dict(json_type, Cookie="__Host-lockstep=" + NOBODY), (401,), "an unknown cookie")
            ask(method, url, dict(json_type, Authorization="Bearer " + read[:-1]), (401,), "a part of a token")
            ask(method, url + ("&" if "?" in url else "?") + "token=" + read, json_type, (400, 401), "a token in the URL")
            if method == "post":
                ask(method, url, bearer, (403,), "a token for reading")
                ask(method, url, dict(json_type, Authorization="Bearer " + write, Origin="https://elsewhere"), (403,),
                    "from another origin")
            else:
                ask(method, url, bearer, (200, 404), "a token for reading")
                ask(method, url, {"Cookie": "a=b; __Host-lockstep=" + read}, (200, 404), "its cookie")
    for method, path in (("get", "/api/v1/jobs"), ("get", "/")):
        c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        try:
            c.request(method.upper(), path, headers={"Authorization": "Bearer " + read})
            wrong.append("plain %s %s: %d" % (method, path, c.getresponse().status))
        except (OSError, http.client.HTTPException):
            tried += 1
    statuses = []
    for _ in range(40):
        c = http.client.HTTPSConnection("127.0.0.1", int(port), context=trust, timeout=60)
        c.request("GET", "/api/v1/jobs", headers={"Authorization": "Bearer " + NOBODY})
        statuses.append(c.getresponse().status)
        c.close()
    if set(statuses) - {401, 429}:
        wrong.append("many unknown tokens: %s" % statuses)
    ask("get", "/api/v1/jobs", {"Authorization": "Bearer " + read}, (200,), "a known one meanwhile")
    print("\n".join(wrong + [json.dumps({"requests": tried, "wrong": len(wrong), "limited": statuses.count(429)})]))
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
