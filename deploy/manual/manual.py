#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manual.py KIND PROGRAM [PAGE]: writes a manual page or a shell's completion from what PROGRAM --help prints.

KIND is man, bash, zsh or fish. PAGE (man) is the text of the page in mdoc, with the lines @OPTIONS@ and
@COMMANDS@ where what the program prints goes; @ABOUT@: what it prints before its options. Prints to standard output.
"""
import os
import re
import subprocess
import sys

OPTION = re.compile(r"^  (?:-(\w), )?--(\[no-\])?([a-z-]+)(?: (\S+))?(?: +(.*))?$")
COMMAND = re.compile(r"^  ([a-z]+) +(\[?[A-Z]+\]?)?  +(.*)$")
PATHS = ("FILE", "DIR", "PATH", "TRACE")


def ask(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


class Option:
    def __init__(self, m):
        self.short, self.negated, self.name, self.value, text = m.groups()
        self.text = text or ""
        self.words = self.value.split("|") if self.value and "|" in self.value and self.value == self.value.lower() else []


def options(text):
    """The options of a help text."""
    found = []
    for line in text.splitlines():
        m = OPTION.match(line)
        if m:
            found.append(Option(m))
        elif found and line.startswith("        "):
            found[-1].text = (found[-1].text + " " + line.strip()).strip()
        elif found and not line.startswith("  "):
            break
    return found


def commands(text):
    """(name, argument, help) of each command of a help text."""
    _, _, listed = text.partition("\nCommands")
    return [m.groups(default="") for m in map(COMMAND.match, listed.split("\n\n")[0].splitlines()) if m]


def mdoc(text):
    """Text that mdoc prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(re.sub(r"^([.'])", r"\\&\1", line) for line in re.split(r"(?<=[^. ][.;]) (?=[A-Za-z])", text))


def mdoc_options(found):
    yield ".Bl -tag -width Ds"
    for o in found:
        names = ([".It Fl %s , " % o.short] if o.short else [".It "]) + ["Fl \\-%s%s" % ("[no\\-]" if o.negated else "", mdoc(o.name))]
        yield "".join(names) + (" Ar %s" % mdoc(o.value) if o.value else "")
        yield mdoc(o.text[:1].upper() + o.text[1:] + ".")
    yield ".El"


def mdoc_commands(program, found, common):
    for name, argument, text in found:
        yield ".Ss %s %s" % (name, argument) if argument else ".Ss %s" % name
        yield mdoc(text[:1].upper() + text[1:] + ".")
        own = [o for o in options(ask(program, "help", name)) if o.name not in common]
        if own:
            yield from mdoc_options(own)


def mdoc_about(text):
    """What stands between the usage and the options: indented lines stay lines."""
    about = re.split(r"^(?:Options:$|  --)", text.split("\n\n", 1)[1] if text.startswith("usage") else text.partition("\n")[2],
                     maxsplit=1, flags=re.M)[0]
    for n, paragraph in enumerate(about.strip("\n").split("\n\n")):
        if n > 0:
            yield ".Pp"
        literal = False
        for line in paragraph.splitlines():
            if line.startswith("  ") != literal:
                literal = not literal
                yield ".Bd -literal -compact" if literal else ".Ed"
            yield mdoc(line.lstrip() if not literal else line)
        if literal:
            yield ".Ed"


def man(program, page):
    text = ask(program, "--help")
    found = options(text)
    with open(page, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line == "@OPTIONS@":
                print("\n".join(mdoc_options(found)))
            elif line == "@ABOUT@":
                print("\n".join(mdoc_about(text)))
            elif line == "@COMMANDS@":
                print("\n".join(mdoc_commands(program, commands(text), {o.name for o in found})))
            else:
                print(line)


def every(program):
    """(command or "", its help, its options) of a program with commands, or of one without."""
    text = ask(program, "--help")
    yield "", "", options(text)
    for name, _, about in commands(text):
        yield name, about, options(ask(program, "help", name))


def flags(found):
    return [f for o in found for f in ["--" + o.name] + (["--no-" + o.name] if o.negated else [])]


def bash(program):
    name = os.path.basename(program)
    function = "_" + name.replace("-", "_")
    rows = list(every(program))
    print("# Completion of %s for bash.\n%s() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=''" % (name, function))
    print("\tcase $before in")
    seen = set()
    for o in (o for _, _, found in rows for o in found):
        if o.value and o.name not in seen and (o.words or o.value in PATHS):
            seen.add(o.name)
            how = "-W '%s'" % " ".join(o.words) if o.words else "-d" if o.value == "DIR" else "-f"
            print("\t--%s) mapfile -t COMPREPLY < <(compgen %s -- \"$word\"); return ;;" % (o.name, how))
    print("\tesac\n\tcase ${COMP_WORDS[1]} in")
    for command, _, found in rows[1:]:
        print("\t%s) words='%s' ;;" % (command, " ".join(flags(found))))
    print("\t*) words='%s' ;;\n\tesac" % " ".join([c for c, _, _ in rows[1:]] + flags(rows[0][2])))
    print("\t[ \"${word:0:1}\" = - ] || [ \"$COMP_CWORD\" -eq 1 ] || { mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return; }")
    print("\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\ncomplete -o filenames -F %s %s" % (function, name))


def quoted(text):
    """Inside single quotes of a shell."""
    return text.replace("'", "’")


def zsh_quoted(text):
    return quoted(text).replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh_options(found):
    for o in found:
        action = ""
        if o.value:
            action = ":%s:%s" % (o.value.replace(":", "\\:").split("|")[0].lower(), "(%s)" % " ".join(o.words) if o.words
                                 else "_directories" if o.value == "DIR" else "_files" if o.value in PATHS else " ")
        for f in flags([o]):
            yield "'%s[%s]%s'" % (f + ("=" if o.value else ""), zsh_quoted(o.text), action)


def zsh(program):
    name = os.path.basename(program)
    rows = list(every(program))
    print("#compdef %s" % name)
    if len(rows) > 1:
        print("if (( CURRENT == 2 )); then\n\tlocal -a commands=(\n%s\n\t)\n\t_describe command commands\n\treturn\nfi\ncase $words[2] in"
              % "\n".join("\t\t'%s:%s'" % (c, zsh_quoted(text)) for c, text, _ in rows[1:]))
        for command, _, found in rows[1:]:
            print("%s) _arguments %s '*:argument:_files' ;;" % (command, " ".join(zsh_options(found))))
        print("esac")
    else:
        print("_arguments %s" % " ".join(zsh_options(rows[0][2])))


def fish(program):
    name = os.path.basename(program)
    rows = list(every(program))
    if len(rows) > 1:
        print("complete -c %s -n __fish_use_subcommand -f" % name)
    for command, about, found in rows:
        if command:
            print("complete -c %s -n __fish_use_subcommand -a %s -d '%s'" % (name, command, quoted(about)))
        when = "-n '__fish_seen_subcommand_from %s'" % command if command else "-n __fish_use_subcommand" if len(rows) > 1 else ""
        for o in found:
            how = "-x -a '%s'" % " ".join(o.words) if o.words else "-r" if o.value in PATHS else "-x" if o.value else ""
            for f in flags([o]):
                print(" ".join(("complete -c %s %s -l %s %s -d '%s'" % (name, when, f[2:], how, quoted(o.text))).split()))


def main():
    kinds = {"man": man, "bash": bash, "zsh": zsh, "fish": fish}
    if len(sys.argv) < 3 or sys.argv[1] not in kinds or len(sys.argv) != (4 if sys.argv[1] == "man" else 3):
        sys.exit(__doc__)
    kinds[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
