#include "storage/token_store.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "storage/sql/run.h"
#include "storage/sql/select_columns.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

int64_t ToBits(const std::vector<v1::Access::Scope>& scopes) {
  int64_t bits = 0;
  for (const v1::Access::Scope scope : scopes) bits |= int64_t{1} << scope;
  return bits;
}

std::vector<v1::Access::Scope> FromBits(int64_t bits) {
  std::vector<v1::Access::Scope> scopes;
  for (int number = v1::Access::SUBMIT; number <= v1::Access::Scope_MAX;
       ++number) {
    if ((bits >> number & 1) != 0) {
      scopes.push_back(static_cast<v1::Access::Scope>(number));
    }
  }
  return scopes;
}

constexpr char kAllTokens[] =
    "SELECT token_id, name, secret_sha256, scopes, create_time, expire_time,"
    " revoke_time, project FROM tokens ORDER BY token_number DESC";

TokenRecord ReadToken(const SqlStatement& row) {
  constexpr SelectColumns kToken(kAllTokens);
  TokenRecord token;
  token.token_id = row.Text(kToken["token_id"]);
  token.name = row.Text(kToken["name"]);
  token.secret_sha256 = row.Text(kToken["secret_sha256"]);
  token.scopes = FromBits(row.Int(kToken["scopes"]));
  token.create_time = row.Time(kToken["create_time"]);
  token.expire_time = row.Time(kToken["expire_time"]);
  token.revoke_time = row.Time(kToken["revoke_time"]);
  token.project = row.Text(kToken["project"]);
  return token;
}

class SqlTokenStore final : public TokenStore {
 public:
  explicit SqlTokenStore(std::unique_ptr<SqlDatabase> db)
      : db_(std::move(db)) {}

  absl::Status Add(const TokenRecord& token) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement insert = db.Prepare(
              "INSERT INTO tokens (token_id, name, secret_sha256, scopes,"
              " create_time, expire_time, project) VALUES "
              "(?1,?2,?3,?4,?5,?6,?7)");
          insert.BindText(1, token.token_id);
          insert.BindText(2, token.name);
          insert.BindText(3, token.secret_sha256);
          insert.BindInt(4, ToBits(token.scopes));
          insert.BindTime(5, token.create_time);
          insert.BindTime(6, token.expire_time);
          insert.BindText(7, token.project);
          return insert.Run();
        });
  }

  absl::Status Revoke(const std::string& token_id, absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement update = db.Prepare(
              "UPDATE tokens SET revoke_time = COALESCE(revoke_time, ?2)"
              " WHERE token_id = ?1");
          update.BindText(1, token_id);
          update.BindTime(2, now);
          OPTFARM_RETURN_IF_ERROR(update.Run());
          if (db.Changes() == 1) return absl::OkStatus();
          return absl::NotFoundError("there is no such token");
        });
  }

  absl::StatusOr<std::vector<TokenRecord>> List() override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(db, SqlTransaction::Mode::kRead,
                            [&]() -> absl::StatusOr<std::vector<TokenRecord>> {
                              SqlStatement query = db.Prepare(kAllTokens);
                              std::vector<TokenRecord> tokens;
                              while (query.Step())
                                tokens.push_back(ReadToken(query));
                              OPTFARM_RETURN_IF_ERROR(query.status());
                              return tokens;
                            });
  }

  absl::Status ForgetEnded(absl::Time before) override {
    absl::MutexLock lock(&mutex_);
    SqlDatabase& db = *db_;
    return RunInTransaction(
        db, SqlTransaction::Mode::kWrite, [&]() -> absl::Status {
          SqlStatement remove = db.Prepare(
              "DELETE FROM tokens WHERE expire_time < ?1 OR revoke_time < ?1");
          remove.BindTime(1, before);
          return remove.Run();
        });
  }

 private:
  absl::Mutex mutex_;
  const std::unique_ptr<SqlDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<TokenStore> MakeSqlTokenStore(std::unique_ptr<SqlDatabase> db) {
  return std::make_unique<SqlTokenStore>(std::move(db));
}

}  // namespace optfarm::storage
