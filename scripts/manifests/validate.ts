import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import type { StrictSchema } from "./kubernetes-schema.ts";
import type { Manifest } from "./variants.ts";

/** Tells what Kubernetes would not take of a manifest: nothing, or a sentence for each. */
export type Validate = (manifest: Manifest) => readonly string[];

/** Make a validator of Kubernetes' own schemas, which refuses fields that they do not name. */
export function createValidator(): Validate {
  const schema = JSON.parse(readFileSync(new URL("kubernetes-schema.json", import.meta.url), "utf8")) as StrictSchema;
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: "kubernetes", definitions: schema.definitions });
  return (manifest) => {
    const kind = `${manifest.apiVersion}/${manifest.kind}`;
    const name = schema.kinds[kind];
    if (name === undefined) return [`${kind} is not in scripts/manifests/kubernetes-schema.json`];
    const check = ajv.getSchema(`kubernetes#/definitions/${name}`);
    if (check === undefined) return [`${kind} has no schema`];
    if (check(manifest) === true) return [];
    return (check.errors ?? []).map(({ instancePath, message, params }) => `${instancePath} ${message ?? ""} ${JSON.stringify(params)}`);
  };
}
