import type { Platform } from "./platforms.ts";

/** The images: one for each backend, one for the node-state server, one with all backends. */
export type ImageName = "all" | "nft" | "iptables" | "ipvs" | "ebpf" | "userspace" | "serve";

/** What a backend takes from Debian. Libraries that its programs are linked with are found by themselves, in these packages. */
export interface Tools {
  readonly packages: readonly string[];
  /** Programs and links to them, by their path in the package. */
  readonly programs: readonly string[];
  /** Links of our own: where, and to what. */
  readonly links: Readonly<Record<string, string>>;
  /** Libraries that are opened at run time, by file name. */
  readonly opened: readonly string[];
  /** Folders of plug-ins, below the folder of libraries. */
  readonly plugins: readonly string[];
}

/** What an image is made of. */
export interface Recipe {
  readonly name: ImageName;
  /** The image's name in a registry. */
  readonly repository: string;
  readonly title: string;
  readonly tools: readonly Tools[];
  /** Arguments of `turnout`, where a container names none. */
  readonly command: readonly string[];
  /** Number of the user: 0 where the kernel is programmed, with the capabilities that the container is given. */
  readonly uid: 0 | 65532;
}

const NONE = { links: {}, opened: [], plugins: [] };

/** What Node itself needs, what scanners recognize Debian by, and texts of licences: those that many share, and that of GCC's libraries. */
export const BASE: Tools = {
  ...NONE,
  packages: ["base-files", "gcc-14-base", "libc6", "libgcc-s1", "libstdc++6"],
  programs: ["/usr/lib/os-release"],
};

/** The program nft. */
export const NFT: Tools = {
  ...NONE,
  packages: [
    "nftables",
    "libnftables1",
    "libnftnl11",
    "libmnl0",
    "libxtables12",
    "libjansson4",
    "libgmp10",
    "libedit2",
    "libbsd0",
    "libmd0",
    "libtinfo6",
  ],
  programs: ["/usr/sbin/nft"],
};

const VARIANTS = ["legacy", "nft"];
const IPTABLES_PROGRAMS = ["iptables", "ip6tables"].flatMap((tool) => ["", "-save", "-restore"].map((verb) => ({ tool, verb })));

const IPTABLES: Tools = {
  packages: ["iptables", "libip4tc2", "libip6tc2", "libxtables12", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11", "libmnl0"],
  programs: VARIANTS.map((variant) => `/usr/sbin/xtables-${variant}-multi`),
  // The names without a variant are what Debian's alternatives choose when the package is installed.
  links: Object.fromEntries(
    IPTABLES_PROGRAMS.flatMap(({ tool, verb }) => [
      ...VARIANTS.map((variant) => [`/usr/sbin/${tool}-${variant}${verb}`, `xtables-${variant}-multi`]),
      [`/usr/sbin/${tool}${verb}`, "xtables-nft-multi"],
    ]),
  ) as Record<string, string>,
  opened: [],
  plugins: ["xtables"],
};

const IPSET: Tools = { ...NONE, packages: ["ipset", "libipset13t64", "libmnl0"], programs: ["/usr/sbin/ipset"] };

/** For the kernel parameters that these backends set. */
const SYSCTL: Tools = { ...NONE, packages: ["procps"], programs: ["/usr/sbin/sysctl"] };

/** For addresses of Services on a device of their own, and for `turnout why` and `turnout doctor`. */
const IP: Tools = {
  ...NONE,
  packages: ["iproute2", "libbpf1", "libelf1t64", "zlib1g", "libzstd1", "libmnl0", "libcap2", "libselinux1", "libpcre2-8-0"],
  programs: ["/usr/bin/ip"],
};

const LIBBPF: Tools = { ...NONE, packages: ["libbpf1", "libelf1t64", "zlib1g", "libzstd1"], programs: [], opened: ["libbpf.so.1"] };

function backend(name: ImageName, title: string, tools: readonly Tools[], uid: Recipe["uid"] = 0): Recipe {
  return { name, repository: `turnout-${name}`, title, tools, command: ["run", "--backend", name], uid };
}

/** All images, by name. */
export const RECIPES: Readonly<Record<ImageName, Recipe>> = {
  all: {
    name: "all",
    repository: "turnout",
    title: "Turnout with all backends",
    tools: [NFT, IPTABLES, SYSCTL, IPSET, IP, LIBBPF],
    command: ["run"],
    uid: 0,
  },
  nft: backend("nft", "Turnout with the nftables backend", [NFT, IP]),
  iptables: backend("iptables", "Turnout with the iptables backend", [IPTABLES, SYSCTL, IP]),
  ipvs: backend("ipvs", "Turnout with the ipvs backend", [IPTABLES, SYSCTL, IPSET, IP]),
  // Its packets outside of pods pass one table of nft.
  ebpf: backend("ebpf", "Turnout with the eBPF backend", [NFT, LIBBPF, IP]),
  userspace: backend("userspace", "Turnout with the userspace backend", [IP], 65532),
  serve: { name: "serve", repository: "turnout-serve", title: "Turnout's node-state server", tools: [], command: ["serve"], uid: 65532 },
};

/** List the Debian packages of some tools, sorted, each once. Pure. */
export function packagesOf(tools: readonly Tools[]): readonly string[] {
  return [...new Set(tools.flatMap(({ packages }) => packages))].toSorted();
}

/** Where the libraries of a machine are. Pure. */
export function libraryFolder({ triplet }: Platform): string {
  return `/usr/lib/${triplet}`;
}
