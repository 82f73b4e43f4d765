// The choice of the model that replies in the playground.

import type { Signal } from "@preact/signals";

import { api } from "../api";
import { ask } from "../problem";
import { useResource } from "../ui/resource";

/** A choice between the models that may reply. An empty text is the model of calls. Without a choice there is nothing to show. */
export function ModelChoice({ partner, model }: { partner: string; model: Signal<string> }) {
  const { data, problem } = useResource((call) => ask(api.GET("/api/character_drafts/{partner}/models", { ...call, params: { path: { partner } } })), [partner]);
  const models = data.value?.models ?? [];
  if (problem.value) return <span class="hint">The models cannot be read: {problem.value.message}</span>;
  if (models.length < 2) return null;
  return (
    <label class="inline">
      Model
      <select name="model" value={model.value} onChange={(event) => (model.value = event.currentTarget.value)}>
        {models.map(({ name, is_default: isDefault }) => (
          <option key={name} value={isDefault ? "" : name}>
            {isDefault ? `${name} (as in calls)` : name}
          </option>
        ))}
      </select>
    </label>
  );
}
