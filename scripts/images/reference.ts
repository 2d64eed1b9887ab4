const COMPONENT = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const HOST_PART = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const HOST = `(?:${HOST_PART}(?:\\.${HOST_PART})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const REGISTRY = new RegExp(`^${HOST}(?:/${COMPONENT})*$`);
const TAG = /^\w[\w.-]{0,127}$/;
/** What clients of registries take; the longest name of an image of ours, with its slash, fits in as well. */
const REGISTRY_MOST = 255 - "/turnout-userspace".length;

/**
 * Read what stands before the name of an image: a registry, and folders in it. Pure.
 * @throws {RangeError} when a registry would not take it.
 * @source distribution/reference: domain, path-component; OCI distribution-spec 1.1, "Pulling manifests"
 */
export function registryFrom(text: string): string {
  if (!REGISTRY.test(text) || text.length > REGISTRY_MOST)
    throw new RangeError(
      `--registry ${JSON.stringify(text)}: a registry is needed, and folders in small letters, e.g. registry.example:5000/team`,
    );
  return text;
}

/** Read the tag of an image. Pure. @throws {RangeError} when a registry would not take it. @source OCI distribution-spec 1.1, "Pulling manifests" */
export function tagFrom(text: string): string {
  if (!TAG.test(text))
    throw new RangeError(
      `--tag ${JSON.stringify(text)}: at most 128 letters, digits, "_", "." and "-" are needed, and no "." or "-" first`,
    );
  return text;
}
