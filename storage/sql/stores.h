// The small stores in a database that speaks SQL and has their tables.

#ifndef OPTFARM_STORAGE_SQL_STORES_H_
#define OPTFARM_STORAGE_SQL_STORES_H_

#include <memory>

#include "storage/audit_store.h"
#include "storage/sql/database.h"
#include "storage/token_store.h"
#include "storage/tune_store.h"
#include "storage/webhook_store.h"

namespace optfarm::storage {

// REQUIRES: the table tokens, webhooks, audit or tunes is there; the engine's
// schema says what columns it has.
std::unique_ptr<TokenStore> MakeSqlTokenStore(std::unique_ptr<SqlDatabase> db);
std::unique_ptr<WebhookStore> MakeSqlWebhookStore(
    std::unique_ptr<SqlDatabase> db);
std::unique_ptr<AuditStore> MakeSqlAuditStore(std::unique_ptr<SqlDatabase> db);
std::unique_ptr<TuneStore> MakeSqlTuneStore(std::unique_ptr<SqlDatabase> db);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_STORES_H_
