// The frame of the console: who is signed in, where to go, and the view that the address names.

import { effect, signal, useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { sessions } from "./api";
import { match } from "./path";
import { addressOf, currentOf, findView, visiblePlaces } from "./places";
import { type Problem, toProblem } from "./problem";
import { Link, navigate, path } from "./router";
import { keptInTab } from "./storage";
import { isDialogOpen } from "./ui/dialog";
import { focusHeading } from "./ui/focus";
import { headingOf } from "./ui/heading";
import { Icon } from "./ui/icon";
import { OnceShown, forgetShown } from "./ui/once-shown";
import { type Command, Palette } from "./ui/palette";
import { Failed, Loading } from "./ui/states";
import { StreamLost } from "./ui/stream-lost";
import { toggleTheme } from "./ui/theme";
import { toggleTimes } from "./ui/time";
import { Toasts } from "./ui/toasts";
import { Account } from "./views/account";
import { SignIn, SignInDialogs } from "./views/sign-in";
import { SignOut, forgetSignOut, signOut } from "./views/sign-out";
import { UnsavedButton, UnsavedDialog } from "./views/unsaved";

const CHOSEN = "colloquy-partner";

/** The partner that an administrator viewed last. */
const chosen = signal<string>(keptInTab.get(CHOSEN) ?? "");
const isPaletteOpen = signal(false);
const isMenuOpen = signal(false);
const isAccountOpen = signal(false);
const isUnsavedOpen = signal(false);
const startProblem = signal<Problem | null>(null);

function start(): void {
  startProblem.value = null;
  sessions.read().catch((error: unknown) => {
    startProblem.value = toProblem(error);
  });
}
start();

/** Removes what this tab keeps of the user. */
export function forgetUser(): void {
  keptInTab.remove(CHOSEN);
}

const partnerOf = (at: string) => match("/p/:partner/:rest*", at)?.["partner"];

effect(() => {
  const partner = partnerOf(path.value);
  if (!partner) return;
  chosen.value = partner;
  keptInTab.set(CHOSEN, partner);
});

// Closes what a session left open when it ends.
effect(() => {
  if (sessions.current.value !== null) return;
  isPaletteOpen.value = false;
  isMenuOpen.value = false;
  isAccountOpen.value = false;
  isUnsavedOpen.value = false;
  forgetSignOut();
  forgetShown();
});

function closeMenu(): void {
  isMenuOpen.value = false;
}

function Navigation({ partner }: { partner: string }) {
  return (
    <nav id="menu" aria-label="Main">
      <ul>
        {visiblePlaces(partner).map((place) => (
          <li key={place.path}>
            <Link to={addressOf(place, partner)} aria-current={currentOf(place, path.value)} onFollow={closeMenu}>
              <Icon name={place.icon} />
              {place.title}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function View({ partner }: { partner: string }) {
  const at = path.value;
  const found = findView(at, partner);
  const title = headingOf(at) ?? found?.title ?? "Page not found";
  const shownAt = useRef(at);
  useEffect(() => {
    document.title = `${title} · Colloquy`;
    if (shownAt.current !== at) focusHeading();
    shownAt.current = at;
  }, [title, at]);
  if (!found) {
    return (
      <div class="empty">
        <h1 tabIndex={-1}>{title}</h1>
        <Link to="/">Go to the overview</Link>
      </div>
    );
  }
  const { view: Shown, names } = found;
  return (
    <>
      <h1 tabIndex={-1} dir="auto">
        {title}
      </h1>
      <Shown key={JSON.stringify([found.path, names])} {...names} />
    </>
  );
}

function Bar({ partner }: { partner: string }) {
  return (
    <header class="bar">
      <button
        type="button"
        class="bare menu"
        aria-label="Menu"
        aria-controls="menu"
        aria-expanded={isMenuOpen.value}
        onClick={() => (isMenuOpen.value = !isMenuOpen.value)}
      >
        <Icon name="menu" />
      </button>
      <Link to="/" class="brand" onFollow={closeMenu}>
        Colloquy
      </Link>
      {partner && <span class="partner">{partner}</span>}
      <StreamLost partner={partner} />
      <UnsavedButton onOpen={() => (isUnsavedOpen.value = true)} />
      <button type="button" class="palette-open" onClick={() => (isPaletteOpen.value = true)}>
        <Icon name="search" />
        <span>Go to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <button type="button" class="bare" aria-label="Switch between light and dark" onClick={toggleTheme}>
        <Icon name="sun" />
      </button>
      <button type="button" class="bare" aria-label="Your session" onClick={() => (isAccountOpen.value = true)}>
        <Icon name="user-round" />
      </button>
    </header>
  );
}

function Frame() {
  const partner = useComputed(() => partnerOf(path.value) ?? sessions.current.value?.partner ?? chosen.value).value;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k" && !isDialogOpen()) {
        event.preventDefault();
        isPaletteOpen.value = true;
      } else if (event.key === "Escape" && isMenuOpen.value && !isDialogOpen()) {
        closeMenu();
        document.querySelector<HTMLElement>("button.menu")?.focus();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  const commands: Command[] = [
    ...visiblePlaces(partner).map((place) => ({
      title: place.title,
      icon: place.icon,
      run: () => navigate(addressOf(place, partner)),
    })),
    { title: "Switch between light and dark", icon: "moon", run: toggleTheme },
    { title: "Switch between relative and absolute times", icon: "clock", run: toggleTimes },
    { title: "Your session", icon: "user-round", run: () => (isAccountOpen.value = true) },
    { title: "Sign out", icon: "log-out", run: () => void signOut(false) },
    { title: "Sign out everywhere", icon: "log-out", run: () => void signOut(true) },
  ];
  const skip = (event: Event) => {
    event.preventDefault();
    focusHeading();
  };
  return (
    <div class={`frame ${isMenuOpen.value ? "menu-open" : ""}`}>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <Bar partner={partner} />
      <Navigation partner={partner} />
      <main id="content">
        <View partner={partner} />
      </main>
      {isPaletteOpen.value && <Palette commands={commands} onClose={() => (isPaletteOpen.value = false)} />}
      {isAccountOpen.value && <Account onClose={() => (isAccountOpen.value = false)} />}
      {isUnsavedOpen.value && <UnsavedDialog onClose={() => (isUnsavedOpen.value = false)} />}
      <OnceShown />
      <SignOut />
      <SignInDialogs />
      <Toasts />
    </div>
  );
}

export function App() {
  if (sessions.current.value === undefined) {
    return (
      <main class="sign-in">
        <div>
          <h1>Colloquy</h1>
          {startProblem.value ? <Failed problem={startProblem.value} retry={start} /> : <Loading />}
        </div>
      </main>
    );
  }
  if (sessions.current.value === null) return <SignIn />;
  return <Frame />;
}
