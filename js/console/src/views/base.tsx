// One knowledge base: its folders beside its budget and its documents.

import { useSignal } from "@preact/signals";

import { KNOWLEDGE, RETRIEVAL, address } from "../addresses";
import { type Schemas, api } from "../api";
import { findBase } from "../knowledge/bases";
import { Cost } from "../knowledge/figures";
import { embeddingWords } from "../knowledge/words";
import { ask } from "../problem";
import { Link, navigate, query } from "../router";
import { Back } from "../ui/back";
import { formatBytes, formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { BudgetSection } from "./base-budget";
import { DeleteBase } from "./base-dialogs";
import { Folder } from "./base-folder";
import { Folders } from "./base-folders";
import { Documents } from "./documents";

type Base = Schemas["ListedBaseView"];
type Budget = Schemas["BudgetView"];

/** Reads a budget, and the figures of its base; null for a base that is gone meanwhile. */
function useBase(partner: string, name: string) {
  return useResource<{ budget: Budget; base: Base | null }>(
    async (call) => {
      const path = { partner, kb: name };
      const budget = await ask(api.GET("/api/knowledgebases/{partner}/{kb}/limits", { ...call, params: { path } }));
      return { budget, base: await findBase(partner, name, call) };
    },
    [partner, name],
    { partner, kinds: ["budget", "folder", "document"], base: name },
  );
}

function Facts({ of }: { of: Base }) {
  return (
    <p class="facts">
      {of.deletion_requested_at ? (
        <span class="state down">
          being deleted since <Time at={of.deletion_requested_at} />
        </span>
      ) : (
        <span>{embeddingWords(of.embedding_status)}</span>
      )}
      <span>{formatBytes(of.size_bytes)}</span>
      <span>
        cost <Cost usd={of.cost_usd} isLowerBound={of.has_unknown_cost} />
      </span>
      {of.expert_name && (
        <span>
          by <bdi>{of.expert_name}</bdi>
        </span>
      )}
      <span>
        created <Time at={of.created_at} />
        {of.user_email && <> by {of.user_email}</>}
      </span>
    </p>
  );
}

export function KnowledgeBase({ partner, name }: { partner: string; name: string }) {
  const folder = query.value.get("folder");
  const found = useBase(partner, name);
  const isDeleting = useSignal(false);
  const base = found.data.value?.base;
  const isOpen = !base?.deletion_requested_at;
  const leave = () => navigate(address(KNOWLEDGE, { partner }));
  return (
    <>
      <div class="toolbar">
        <Back to={address(KNOWLEDGE, { partner })}>All knowledge bases</Back>
        <div class="actions">
          <Link to={address(RETRIEVAL, { partner, name })} class="back">
            <Icon name="search" /> Retrieval
          </Link>
          {base && isOpen && (
            <button type="button" onClick={() => (isDeleting.value = true)}>
              <Icon name="trash-2" /> Delete the base
            </button>
          )}
        </div>
      </div>
      <Shown of={found}>
        {({ budget, base }) => (
          <>
            {base && <Facts of={base} />}
            <div class="base">
              <Folders partner={partner} base={name} selected={folder} all={base} isOpen={isOpen} />
              <div class="base-content">
                <BudgetSection
                  partner={partner}
                  base={name}
                  budget={budget}
                  waiting={base?.blocked ?? 0}
                  isOpen={isOpen}
                  onChanged={() => void found.reload()}
                />
                {folder !== null ? (
                  <Folder key={folder} partner={partner} base={name} name={folder} isOpen={isOpen}>
                    <Documents partner={partner} base={name} folder={folder} />
                  </Folder>
                ) : (
                  <>
                    <h2>All documents{base && <span class="hint"> {formatNumber(base.documents)}</span>}</h2>
                    <Documents partner={partner} base={name} folder={null} />
                  </>
                )}
              </div>
            </div>
          </>
        )}
      </Shown>
      {isDeleting.value && base && <DeleteBase partner={partner} of={base} onDeleted={leave} onClose={() => (isDeleting.value = false)} />}
    </>
  );
}
