#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer that is not ours, for smoke/keys.sh: Python's own TLS on the ingest port of a collector.

peer.py PORT CA [CERTIFICATE KEY]   greets over TLS and sends a report; prints what the collector did: "greeted" if it
                                    greets back, "refused" and why if it ends the connection
peer.py PORT plain                  greets without TLS; prints the alert of TLS that answers
"""
import socket
import ssl
import struct
import sys

REQ = b"\0SP\0\0\x30\0\0"
REPORT = b"\x08\x01\x12\x02h9"


def main(port, ca, *own):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as raw:
        if ca == "plain":
            raw.sendall(REQ)
            print("alert" if raw.recv(64)[:1] == b"\x15" else "no alert")
            return
        context = ssl.create_default_context(cafile=ca)
        if own:
            context.load_cert_chain(*own)
        try:
            with context.wrap_socket(raw, server_hostname="127.0.0.1") as s:
                s.sendall(REQ + struct.pack(">QI", 4 + len(REPORT), 0x80000001) + REPORT)
                print("greeted" if s.recv(8)[:3] == b"\0SP" else "closed")
        except OSError as e:
            print("refused", getattr(e, "reason", e))


main(*sys.argv[1:])
