/** The families of a cluster, the primary one first. */
export type Families = "IPv4" | "IPv6" | "IPv4, IPv6" | "IPv6, IPv4";

/** A cluster of Kubernetes that suites run against, whatever it is made of. */
export interface KubeCluster {
  /** Kubernetes' version, without a `v`. */
  readonly kubernetes: string;
  /** Its families, the primary one first. */
  readonly families: Families;
  /** The ranges of pods, as `clusterCIDR` has them. */
  readonly pods: string;
  readonly nodes: readonly string[];
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The API server as programs on the nodes reach it without a service proxy: https://HOST:PORT. */
  readonly server: string;
  /** What comes before a command that reaches the API server; empty: nothing. */
  readonly before: readonly string[];
  /** Give every node the images of an archive. */
  load(archive: string): Promise<void>;
}
