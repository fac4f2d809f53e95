// Where the bytes of stored files come from: the server or, in a report, the
// report itself.

import { createContext } from 'preact';
import { blob } from './api';

export type ReadFile = (sha256: string, signal?: AbortSignal) => Promise<Blob>;

export const FilesContext = createContext<ReadFile>(blob);
