// SPDX-License-Identifier: Apache-2.0
// Reading the API: one GET at a time per URL, ETags kept, so that an unchanged answer costs a 304.

import { quote } from "./dom.js";

const kept = new Map(); // url -> {etag, body}
const KEPT_MAX = 64;

export class Refused extends Error {
	constructor(status, problem) {
		super(problem?.detail ?? problem?.title ?? `status ${status}`);
		this.status = status;
	}
}

// {body, fresh}: fresh is false if the answer is the one of last time.
export async function get(url) {
	const old = kept.get(url);
	const response = await fetch(url, {
		cache: "no-store",
		headers: old ? { "If-None-Match": old.etag } : {},
		signal: AbortSignal.timeout(10000),
	});
	if (response.status === 304 && old)
		return { body: old.body, fresh: false };
	if (!response.ok)
		throw new Refused(response.status, await response.json().catch(() => null));
	const body = await response.json();
	const etag = response.headers.get("ETag");
	kept.delete(url);
	if (etag)
		kept.set(url, { etag, body });
	if (kept.size > KEPT_MAX)
		kept.delete(kept.keys().next().value);
	return { body, fresh: true };
}

// Has the browser keep a token, or forget it (""), and send it with each request.
export async function sign(token) {
	const response = await fetch("/api/v1/session", {
		method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
	});
	kept.clear();
	if (!response.ok)
		throw new Refused(response.status, await response.json().catch(() => null));
}

// The command line that asks this collector. It names the files of the certificates and the token, never the token itself.
export const secure = () => location.protocol === "https:";
const server = () => (location.origin === "http://127.0.0.1:7118" ? "" : `--server ${quote(location.origin)} `)
	+ (secure() ? "--ca-file ca.pem --token-file TOKEN " : "");
export const command = (word, name) => `lockstep ${server()}${word} ${quote(name)}`;
// The same for curl, which takes the token from a variable.
export const curl = (url) => `curl -s ${secure() ? '--cacert ca.pem -H "Authorization: Bearer $TOKEN" ' : ""}${quote(url)}`;

export const jobUrl = (job, rest = "") => `/api/v1/jobs/${encodeURIComponent(job)}${rest}`;
export const findingUrl = (id) => `/api/v1/findings/${encodeURIComponent(id)}`;
