// Writes `src/generated/api.d.ts`: the types of the API, from its OpenAPI description.
//
//   node types.mjs [description.json]

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

import openapiTS, { astToString } from "openapi-typescript";

const given = process.argv[2];
const description = given ? pathToFileURL(path.resolve(given)) : new URL("../../backend/openapi.json", import.meta.url);
const folder = new URL("src/generated/", import.meta.url);

const types = astToString(await openapiTS(description));
await mkdir(folder, { recursive: true });
await writeFile(new URL("api.d.ts", folder), types);
