/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - strings from outside made safe, and strings made from bytes.
 *
 * Owner:   none; pure functions.
 * Units:   sizes in bytes, terminator included where a buffer is given.
 * Errors:  -LS_ELIMIT when a result does not fit, -LS_EPARSE for malformed input.
 * Limits:  the caller's buffer.
 */
#ifndef LS_BASE_TEXT_H
#define LS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

/* The value of a macro as a string literal. */
#define LS_TEXT_OF(value) LS_TEXT_OF_(value)
#define LS_TEXT_OF_(words) #words

/* Copies src (NUL-terminated) to dst; -LS_ELIMIT if it does not fit (dst is then
 * untouched). */
int ls_text_copy(char *dst, size_t size, const char *src) LS_MUSTCHECK;

/* True if s is valid UTF-8 (RFC 3629) without control characters, of 1 to max bytes. */
bool ls_text_is_name(const char *s, size_t len, size_t max);

/*
 * Writes s made safe for a terminal or log line: control bytes, DEL, C1 controls,
 * bidirectional overrides (U+202A-E, U+2066-9, U+200E/F) and invalid UTF-8 become \xNN;
 * cut to fit, always terminated. Returns the length written.
 */
size_t ls_text_escape(char *dst, size_t size, const char *s, size_t len);

/* Lower-case hex of bytes; dst needs 2 * len + 1. */
void ls_text_hex(char *dst, const uint8_t *bytes, size_t len);

/* Value of one hex digit of either case, or -1. */
int ls_text_hex_value(char c);

/* The decimal number that s, of at most len bytes, begins with: how many digits it has, 0
 * if there is none of at most max (*ret_v is untouched then). */
size_t ls_text_digits(const char *s, size_t len, uint64_t max, uint64_t *ret_v);

/* True if s (NUL-terminated) is such a number and nothing else. */
bool ls_text_number(const char *s, uint64_t max, uint64_t *ret_v);

/* len bytes from 2 * len hex digits; -LS_EPARSE. */
int ls_text_unhex(uint8_t *dst, size_t len, const char *hex) LS_MUSTCHECK;

/* The lowest 5 * n bits of v as n characters of Crockford's base 32, upper case; dst
 * needs n + 1. */
void ls_text_crockford(char *dst, size_t n, uint64_t v);

/*
 * RFC 3339 UTC with ms ("2026-11-20T14:02:11.320Z") from microseconds since the epoch,
 * years 0000 to 9999 (others become the nearest of these); dst needs 32.
 */
void ls_text_time(char *dst, int64_t t_wall_us);

/* v rounded to so many (1 to LS_TEXT_DIGITS_MAX) significant digits, and never minus zero; infinite if that leaves the range. */
#define LS_TEXT_DIGITS_MAX 15
double ls_text_round(double v, int digits);

#endif
