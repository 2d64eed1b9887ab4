/** A schema of Kubernetes' OpenAPI document, as far as it is read here. */
interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly $ref?: string;
  readonly enum?: readonly string[];
}

interface Definition extends Schema {
  readonly "x-kubernetes-group-version-kind"?: readonly { readonly group: string; readonly version: string; readonly kind: string }[];
}

/** Kubernetes' OpenAPI document. */
export interface OpenApi {
  readonly definitions: Readonly<Record<string, Definition>>;
}

/** Schemas of some kinds and of all that they name, which refuse fields they don't know. */
export interface StrictSchema {
  /** Of Kubernetes, e.g. `v1.36.3`. */
  readonly version: string;
  /** The schema of a kind, by `apiVersion/kind`. */
  readonly kinds: Readonly<Record<string, string>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

/** The kinds that our manifests have. */
const KINDS = ["v1/ServiceAccount", "v1/ConfigMap", "v1/Namespace", "apps/v1/DaemonSet", "apps/v1/Deployment"];
const RBAC = ["ClusterRole", "ClusterRoleBinding"].map((kind) => `rbac.authorization.k8s.io/v1/${kind}`);

const PREFIX = "#/definitions/";

/** Kubernetes writes either a number or a text there. */
const EITHER = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

function strict({ type, format, properties, required, items, additionalProperties, $ref, enum: values }: Schema): Schema {
  if ($ref !== undefined) return { $ref };
  return {
    ...(type === undefined ? {} : { type }),
    ...(format === undefined ? {} : { format }),
    ...(values === undefined ? {} : { enum: values }),
    ...(required === undefined ? {} : { required }),
    ...(items === undefined ? {} : { items: strict(items) }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, strict(one)])),
          additionalProperties: false,
        }),
    ...(typeof additionalProperties === "object" ? { additionalProperties: strict(additionalProperties) } : {}),
  };
}

function referencesIn(schema: Schema): readonly string[] {
  const below = [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties];
  const own = schema.$ref === undefined ? [] : [schema.$ref.slice(PREFIX.length)];
  return [...own, ...below.flatMap((one) => (typeof one === "object" ? referencesIn(one) : []))];
}

/** Take from Kubernetes' OpenAPI document what our manifests have, without descriptions, and refuse what it does not name. Pure. */
export function schemaOf({ definitions }: OpenApi, version: string): StrictSchema {
  const kinds = Object.fromEntries(
    Object.entries(definitions).flatMap(([name, definition]) =>
      (definition["x-kubernetes-group-version-kind"] ?? [])
        .map(({ group, version: ofGroup, kind }) => [group, ofGroup, kind].filter((part) => part !== "").join("/"))
        .filter((kind) => [...KINDS, ...RBAC].includes(kind))
        .map((kind) => [kind, name] as const),
    ),
  );
  const kept: Record<string, Schema> = {};
  const queue = Object.values(kinds);
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    const definition = definitions[name];
    if (kept[name] !== undefined || definition === undefined) continue;
    const schema = name === EITHER ? {} : strict(definition);
    kept[name] = schema;
    queue.push(...referencesIn(schema));
  }
  return { version, kinds, definitions: Object.fromEntries(Object.entries(kept).toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}
