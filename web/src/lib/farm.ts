// Who is looking, and at which farm.

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { WhoAmI } from './types';

export const FarmContext = createContext<WhoAmI | undefined>(undefined);

export function useFarm(): WhoAmI | undefined {
  return useContext(FarmContext);
}

/** Whether the token has the scope; an administrator's has all. */
export function may(farm: WhoAmI | undefined, scope: 'SUBMIT' | 'READ' | 'ADMIN'): boolean {
  return farm !== undefined && (farm.scopes.includes(scope) || farm.scopes.includes('ADMIN'));
}
