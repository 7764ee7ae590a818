/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/digest.h"

#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/json.h"
#include "proto/base/text.h"

int
ls_digest_json(const json_t *v, char *dst)
{
	static const char prefix[] = "sha256:";
	uint8_t md[EVP_MAX_MD_SIZE];
	unsigned md_len;
	int ok;
	char *text = ls_json_canonical(v);

	if (!text)
		return -ENOMEM;
	ok = EVP_Digest(text, strlen(text), md, &md_len, EVP_sha256(), NULL);
	free(text);
	if (!ok)
		return -ENOMEM;
	memcpy(dst, prefix, sizeof(prefix));
	ls_text_hex(dst + sizeof(prefix) - 1, md, md_len);
	return 0;
}

uint64_t
ls_digest_bits(const char *text, size_t len)
{
	uint8_t md[SHA256_DIGEST_LENGTH];
	uint64_t bits;

	SHA256((const uint8_t *)text, len, md);
	memcpy(&bits, md, sizeof(bits));
	return be64toh(bits);
}
