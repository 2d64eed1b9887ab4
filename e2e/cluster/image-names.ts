/** What an image of the suite is for, and how it starts. */
export interface ImageRecipe {
  /** Of its file tree (image-roots.sh), and of its archive. */
  readonly name: string;
  /** What its reference has before the tag. */
  readonly repository: string;
  /** When the suite names none: what is of no suite. */
  readonly tag?: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

/** The images that a cluster and the sig-network suite run. */
export const IMAGE_RECIPES: readonly ImageRecipe[] = [
  { name: "pause", repository: "registry.k8s.io/pause", entrypoint: ["/pause"], command: [] },
  { name: "agnhost", repository: "registry.k8s.io/e2e-test-images/agnhost", entrypoint: ["/agnhost"], command: ["pause"] },
  { name: "busybox", repository: "registry.k8s.io/e2e-test-images/busybox", entrypoint: [], command: ["sh"] },
  { name: "distroless-iptables", repository: "registry.k8s.io/build-image/distroless-iptables", entrypoint: [], command: ["sh"] },
  {
    name: "regression-issue-74839",
    repository: "registry.k8s.io/e2e-test-images/regression-issue-74839",
    entrypoint: ["/regression-issue-74839"],
    command: [],
  },
  { name: "coredns", repository: "registry.k8s.io/coredns/coredns", tag: "v1.12.4", entrypoint: ["/coredns"], command: [] },
  { name: "kube-proxy", repository: "registry.k8s.io/kube-proxy", tag: "here", entrypoint: ["/bin/kube-proxy"], command: [] },
];

/**
 * The references of an image, at least one: all by which the suite asks for it (`listed`: the lines of `e2e.test --list-images`), or the one with the
 * recipe's own tag. Pure.
 * @throws {Error} when the suite does not know the image.
 */
export function referencesOf({ repository, tag }: ImageRecipe, listed: readonly string[]): readonly string[] {
  if (tag !== undefined) return [`${repository}:${tag}`];
  const references = listed.filter((line) => line.startsWith(`${repository}:`));
  if (references.length > 0) return references;
  throw new Error(`e2e.test --list-images has no ${repository}: look for its new name, and mend image-names.ts`);
}

/** A reference of a recipe by its name. @throws {Error} when there is none. */
export function referenceFor(name: string, listed: readonly string[]): string {
  const recipe = IMAGE_RECIPES.find((candidate) => candidate.name === name);
  const [reference] = recipe === undefined ? [] : referencesOf(recipe, listed);
  if (reference === undefined) throw new Error(`no recipe for ${name}`);
  return reference;
}
