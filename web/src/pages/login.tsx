// The login: a token for a cookie that scripts cannot read.

import { useState } from 'preact/hooks';
import { login } from '../lib/api';
import { Logo } from '../parts/icons';
import { useAction } from '../parts/ui';

export function LoginPage({ done }: { done: () => void }) {
  const [token, setToken] = useState('');
  const { run, busy, error } = useAction();
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await run(() => login(token.trim()))) done();
  };
  const refused = error?.status === 401;
  return (
    <main class="login">
      <form class="card" onSubmit={submit}>
        <span class="brand"><Logo />Optfarm</span>
        <div>
          <h1>Log in</h1>
          <p class="muted">This server wants a token. Your operator makes one
            with <code>optctl token create NAME --scope=read --scope=submit</code>.</p>
        </div>
        <label class="field">
          Token
          <input type="password" name="token" value={token} required autofocus autocomplete="current-password"
            spellcheck={false} aria-invalid={error !== undefined} aria-describedby={error ? 'login-error' : undefined}
            onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        {error && (
          <p class="notice bad" id="login-error" role="alert">
            {refused ? 'The server does not know this token: it is mistyped, has expired or was revoked.' : error.message}
          </p>
        )}
        <button class="primary" type="submit" disabled={busy || token.trim() === ''}>Log in</button>
        <p class="small muted">The browser keeps a cookie for a week instead of the token. It ends when you log out
          and when the server restarts.</p>
      </form>
    </main>
  );
}
