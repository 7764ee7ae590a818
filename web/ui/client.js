// SPDX-License-Identifier: Apache-2.0
// Reading the API: one GET at a time per URL, ETags kept, so that an unchanged answer costs a 304.

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

export const jobUrl = (job, rest = "") => `/api/v1/jobs/${encodeURIComponent(job)}${rest}`;
export const findingUrl = (id) => `/api/v1/findings/${encodeURIComponent(id)}`;
