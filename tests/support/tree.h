/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - small trees of files below the directory of a test: a /proc and a /sys of
 * one's own.
 *
 * Owner:   test programs.
 * Units:   none.
 * Errors:  every failure fails the test.
 * Limits:  paths of 1,000 bytes.
 */
#ifndef LS_TESTS_TREE_H
#define LS_TESTS_TREE_H

/* Writes text to root/path, making root and the directories on the way; replaces what
 * was there. */
void tree_write(const char *root, const char *path, const char *text);

/* Makes a symbolic link root/path to target, which need not be there; as tree_write for
 * directories. */
void tree_link(const char *root, const char *path, const char *target);

/* Removes the file root/path. */
void tree_remove(const char *root, const char *path);

#endif
