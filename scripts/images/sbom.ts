import { SUITE } from "./debian.ts";
import type { DebianPackage } from "./debian-lock.ts";
import type { NpmPackage } from "./npm-lock.ts";

/** All that an image is made of. */
export interface Ingredients {
  readonly repository: string;
  readonly version: string;
  readonly debian: readonly DebianPackage[];
  readonly npm: readonly NpmPackage[];
}

interface Component {
  readonly type: "library" | "operating-system";
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly purl?: string;
  readonly licenses?: readonly { readonly expression: string }[];
  readonly hashes?: readonly { readonly alg: "SHA-256" | "SHA-512"; readonly content: string }[];
}

function debianComponent({ name, version, arch, sha256 }: DebianPackage): Component {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${arch}&distro=debian-${SUITE.version}`;
  return { type: "library", "bom-ref": purl, name, version, purl, hashes: [{ alg: "SHA-256", content: sha256 }] };
}

function npmComponent({ name, version, license, integrity }: NpmPackage): Component {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const content = integrity === undefined ? undefined : Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    ...(content === undefined ? {} : { hashes: [{ alg: "SHA-512", content }] }),
  };
}

const DEBIAN: Component = { type: "operating-system", "bom-ref": `debian-${SUITE.version}`, name: "debian", version: SUITE.version };

/**
 * List what an image is made of: a bill of materials that scanners read. Pure, and without a time or a random number.
 *
 * Shape: Debian's packages, of whose files some are in the image; npm's, which are bundled into the command or beside it; the Node.
 * @source CycloneDX 1.6, JSON
 */
export function billOfMaterials({ repository, version, debian, npm }: Ingredients): string {
  const components = [DEBIAN, ...debian.map(debianComponent), ...npm.map(npmComponent)];
  const root = `${repository}@${version}`;
  const bill = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "container", "bom-ref": root, name: repository, version } },
    components,
    dependencies: [{ ref: root, dependsOn: components.map((component) => component["bom-ref"]) }],
  };
  return `${JSON.stringify(bill, undefined, 1)}\n`;
}
