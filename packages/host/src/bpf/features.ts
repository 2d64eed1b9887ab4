import { release } from "node:os";
import { ProxyError } from "@turnout/core";
import { RIGHTS_HINT } from "./errors.ts";

/** What a data path on eBPF may need of a host. */
export const FEATURES = [
  "libbpf",
  "rights",
  "bpffs",
  "cgroup2",
  "btf",
  "batches",
  "cgroup-hooks",
  "refusals",
  "links",
  "tc",
  "tcx",
  "conntrack",
  "socket-destroy",
] as const;

/** One of them. */
export type BpfFeature = (typeof FEATURES)[number];

/** What was found of a feature: that it is there; what is missing of it, e.g. the names of kfuncs; or that it could not be tried for lack of another. */
export type Found = true | { readonly missing: string } | { readonly untriedFor: BpfFeature };

/** Said with the version that is needed. */
export const NEWER: string = `this is Linux ${release()}, a newer kernel is needed`;

/** What is wrong and what to try; the versions are those in which the feature came. */
const TEXTS: Readonly<Record<BpfFeature, { readonly what: string; readonly hint: string }>> = {
  libbpf: { what: "libbpf 1.0 or later is missing", hint: "install it: apt-get install libbpf1" },
  rights: { what: "this process may not load BPF programs", hint: RIGHTS_HINT },
  bpffs: { what: "no bpffs is mounted", hint: "mount -t bpf bpf /sys/fs/bpf; in a container, mount the host's there" },
  cgroup2: {
    what: "cgroup v2 is not mounted",
    hint: "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified; in a container, mount the host's there",
  },
  btf: { what: "this kernel does not tell its types (BTF)", hint: "a kernel with CONFIG_DEBUG_INFO_BTF=y is needed" },
  batches: { what: "this kernel can't write maps in batches", hint: `${NEWER}: Linux 5.6` },
  "cgroup-hooks": { what: "this kernel lacks hooks of cgroups", hint: `a kernel with CONFIG_CGROUP_BPF=y is needed, Linux 5.9 or later` },
  refusals: { what: "hooks of cgroups can't say with which error a call fails", hint: `${NEWER}: Linux 5.18` },
  links: { what: "this kernel can't attach programs by links or replace their programs", hint: `${NEWER}: Linux 5.7` },
  tc: {
    what: "this kernel lacks programs for tc",
    hint: "a kernel with CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS is needed; modprobe cls_bpf sch_ingress",
  },
  tcx: { what: "this kernel lacks tcx", hint: `${NEWER}: Linux 6.6; clsact does the same without links` },
  conntrack: {
    what: "this kernel lacks functions of conntrack for BPF programs",
    hint: "Linux 6.1 or later with CONFIG_NF_CONNTRACK and CONFIG_NF_NAT is needed; modprobe nf_conntrack nf_nat",
  },
  "socket-destroy": {
    what: "this kernel can't end sockets from outside (SOCK_DESTROY)",
    hint: "a kernel with CONFIG_INET_DIAG_DESTROY=y and CONFIG_INET_UDP_DIAG is needed; modprobe udp_diag tcp_diag",
  },
};

/** Say in one line that a feature is missing. Pure. */
export function featureError(feature: BpfFeature, missing: string): ProxyError {
  if (feature === "socket-destroy" && missing.endsWith("EPERM"))
    return new ProxyError("permission_denied", "this process may not end sockets from outside (SOCK_DESTROY)", {
      object: missing,
      hint: "run as root, or with CAP_NET_ADMIN",
    });
  const code = feature === "libbpf" ? "tool_missing" : feature === "rights" ? "permission_denied" : "host_unsupported";
  const { what, hint } = TEXTS[feature];
  return new ProxyError(code, what, { ...(missing === "" ? {} : { object: missing }), hint });
}

/** Make errors of what is missing, in the order of {@link FEATURES}. A feature that could not be tried has the error of what it needs. Pure. */
export function missingFeatures(found: Readonly<Record<BpfFeature, Found>>): ReadonlyMap<BpfFeature, ProxyError> {
  const errorOf = (feature: BpfFeature): ProxyError | undefined => {
    const one = found[feature];
    if (one === true) return undefined;
    return "missing" in one ? featureError(feature, one.missing) : errorOf(one.untriedFor);
  };
  return new Map(
    FEATURES.flatMap((feature) => {
      const error = errorOf(feature);
      return error === undefined ? [] : [[feature, error] as const];
    }),
  );
}
