#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write the uAPI header, the policies and the operation table from kvpool.yaml.

    generate.py           rewrite the files
    generate.py --check   exit 1 and show the difference when a file differs
"""
import difflib
import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEC = ROOT / "uapi" / "kvpool.yaml"
LICENCE_UAPI = "/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */"
MARK = "Written by uapi/generate.py from uapi/kvpool.yaml: change that instead."
NLA_TYPES = {"u32": "NLA_U32", "s32": "NLA_S32", "u64": "NLA_U64",
             "string": "NLA_NUL_STRING", "flag": "NLA_FLAG"}


def ident(name):
    return name.replace("-", "_")


def upper(name):
    return ident(name).upper()


class Spec:
    def __init__(self, text):
        self.raw = yaml.safe_load(text)
        definitions = self.raw["definitions"]
        self.consts = {d["name"]: d["value"] for d in definitions if d["type"] == "const"}
        self.enums = {d["name"]: d for d in definitions if d["type"] == "enum"}
        self.sets = {s["name"]: s["attributes"] for s in self.raw["attribute-sets"]}
        self.ops = self.raw["operations"]

    def attribute(self, set_name, name):
        for attribute in self.sets[set_name]:
            if attribute["name"] == name:
                return attribute
        raise SystemExit(f"kvpool.yaml: {set_name} has no attribute {name}")

    def value(self, text):
        return self.consts.get(text, text)


def constant(set_name, name):
    return f"KVPOOL_A_{upper(set_name)}_{upper(name)}"


def line(text, entry):
    """Lines of a member and what it is, beside it where there is room."""
    if "doc" not in entry:
        return [f"\t{text},"]
    doc = f"/* {entry['doc']} */"
    beside = f"\t{text},\t{doc}"
    return [beside] if len(beside.expandtabs(8)) <= 100 else [f"\t{doc}", f"\t{text},"]


def uapi_header(spec):
    out = [LICENCE_UAPI, f"/* {MARK} */", "#ifndef _UAPI_KVPOOL_NETLINK_H",
           "#define _UAPI_KVPOOL_NETLINK_H", "",
           '#define KVPOOL_FAMILY_NAME\t"kvpool"',
           f"#define KVPOOL_FAMILY_VERSION\t{spec.consts['family-version']}", ""]
    for name, value in spec.consts.items():
        if name != "family-version":
            out.append(f"#define KVPOOL_{upper(name)}\t{value}")
    for group in spec.raw["mcast-groups"]:
        out += [f"#define KVPOOL_MCGRP_{upper(group['name'])}\t\"{group['name']}\"", ""]
    for name, enum in spec.enums.items():
        if "doc" in enum:
            out.append(f"/* {enum['doc']} */")
        out.append(f"enum kvpool_{ident(name)} {{")
        for entry in enum["entries"]:
            out += line(f"KVPOOL_{upper(name)}_{upper(entry['name'])}", entry)
        out += ["};", ""]
    for name, attributes in spec.sets.items():
        out.append("enum {")
        for index, attribute in enumerate(attributes):
            start = " = 1" if index == 0 else ""
            out += line(f"{constant(name, attribute['name'])}{start}", attribute)
        out += ["", f"\t__KVPOOL_A_{upper(name)}_END,",
                f"\tKVPOOL_A_{upper(name)}_MAX = __KVPOOL_A_{upper(name)}_END - 1", "};", ""]
    out.append("enum {")
    for index, op in enumerate(spec.ops):
        start = " = 1" if index == 0 else ""
        out += line(f"KVPOOL_CMD_{upper(op['name'])}{start}", op)
    out += ["", "\t__KVPOOL_CMD_END,", "\tKVPOOL_CMD_MAX = __KVPOOL_CMD_END - 1", "};", "",
            "#endif /* _UAPI_KVPOOL_NETLINK_H */"]
    return out


def policy_entry(spec, attribute):
    kind = NLA_TYPES[attribute["type"]]
    checks = attribute.get("checks", {})
    if "enum" in attribute:
        last = len(spec.enums[attribute["enum"]]["entries"]) - 1
        return f"NLA_POLICY_MAX({kind}, {last})"
    if "max-len" in checks:
        return f"{{ .type = {kind}, .len = {spec.value(checks['max-len'])} }}"
    if "min" in checks:
        return f"NLA_POLICY_MIN({kind}, {checks['min']})"
    if "max" in checks:
        return f"NLA_POLICY_MAX({kind}, {checks['max']})"
    return f"{{ .type = {kind} }}"


def requests(spec):
    return [op for op in spec.ops if not op.get("event")]


def table_source(spec):
    out = ["// SPDX-License-Identifier: GPL-2.0", f"/* {MARK} */", '#include "netlink_gen.h"', ""]
    for op in requests(spec):
        name, request = ident(op["name"]), op["request"]
        order = [a["name"] for a in spec.sets[op["attribute-set"]]]
        last = max(request, key=order.index) if request else order[0]
        out.append(f"static const struct nla_policy {name}_policy[{constant(op['attribute-set'], last)} + 1] = {{")
        for attr in sorted(request, key=order.index):
            entry = policy_entry(spec, spec.attribute(op["attribute-set"], attr))
            out.append(f"\t[{constant(op['attribute-set'], attr)}] = {entry},")
        out += ["};", ""]
    out.append("const struct genl_ops kvpool_nl_ops[KVPOOL_NL_OPS] = {")
    for op in requests(spec):
        name = ident(op["name"])
        out += ["\t{", f"\t\t.cmd\t\t= KVPOOL_CMD_{upper(op['name'])},"]
        if op.get("do"):
            out.append(f"\t\t.doit\t\t= kvpool_nl_{name}_doit,")
        if op.get("dump"):
            out += [f"\t\t.start\t\t= kvpool_nl_{name}_start,",
                    f"\t\t.dumpit\t\t= kvpool_nl_{name}_dumpit,",
                    f"\t\t.done\t\t= kvpool_nl_{name}_done,"]
        out += [f"\t\t.policy\t\t= {name}_policy,",
                f"\t\t.maxattr\t= ARRAY_SIZE({name}_policy) - 1,", "\t},"]
    out += ["};", "", "const struct genl_multicast_group kvpool_nl_mcgrps[KVPOOL_NL_MCGRPS] = {"]
    for group in spec.raw["mcast-groups"]:
        out.append(f"\t[KVPOOL_NL_MCGRP_{upper(group['name'])}] = "
                   f"{{ .name = KVPOOL_MCGRP_{upper(group['name'])} }},")
    return out + ["};"]


def table_header(spec):
    out = ["/* SPDX-License-Identifier: GPL-2.0 */", f"/* {MARK} */", "#ifndef KVPOOL_NETLINK_GEN_H",
           "#define KVPOOL_NETLINK_GEN_H", "", "#include <net/genetlink.h>", "",
           '#include "../uapi/kvpool_netlink.h"', "",
           f"#define KVPOOL_NL_OPS\t{len(requests(spec))}"]
    for index, group in enumerate(spec.raw["mcast-groups"]):
        out.append(f"#define KVPOOL_NL_MCGRP_{upper(group['name'])}\t{index}")
    out += [f"#define KVPOOL_NL_MCGRPS\t{len(spec.raw['mcast-groups'])}", "",
            "extern const struct genl_ops kvpool_nl_ops[KVPOOL_NL_OPS];",
            "extern const struct genl_multicast_group kvpool_nl_mcgrps[KVPOOL_NL_MCGRPS];", ""]
    for op in requests(spec):
        name = ident(op["name"])
        if op.get("do"):
            out.append(f"int kvpool_nl_{name}_doit(struct sk_buff *skb, struct genl_info *info);")
        if op.get("dump"):
            out += [f"int kvpool_nl_{name}_start(struct netlink_callback *cb);",
                    f"int kvpool_nl_{name}_dumpit(struct sk_buff *skb, struct netlink_callback *cb);",
                    f"int kvpool_nl_{name}_done(struct netlink_callback *cb);"]
    return out + ["", "#endif /* KVPOOL_NETLINK_GEN_H */"]


def main():
    spec = Spec(SPEC.read_text())
    files = {"uapi/kvpool_netlink.h": uapi_header(spec),
             "kmod/netlink_gen.h": table_header(spec),
             "kmod/netlink_gen.c": table_source(spec)}
    differs = False
    for name, lines in files.items():
        path, text = ROOT / name, "\n".join(lines) + "\n"
        if sys.argv[1:] == ["--check"]:
            old = path.read_text() if path.exists() else ""
            diff = list(difflib.unified_diff(old.splitlines(), text.splitlines(), name,
                                             "kvpool.yaml", lineterm=""))
            differs |= bool(diff)
            print("\n".join(diff), end="\n" if diff else "")
        else:
            path.write_text(text)
    sys.exit(differs)


if __name__ == "__main__":
    main()
