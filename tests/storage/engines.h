// What every engine is to do is tested with every engine: a store of each in
// turn, with nothing in it. PostgreSQL is a cluster of the test program's own.

#ifndef OPTFARM_TESTS_STORAGE_ENGINES_H_
#define OPTFARM_TESTS_STORAGE_ENGINES_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/database.h"
#include "storage/postgres/stores.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/metadata_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::storage {

enum class Engine { kSqlite, kPostgres };

inline std::string EngineName(const ::testing::TestParamInfo<Engine>& info) {
  return info.param == Engine::kSqlite ? "Sqlite" : "Postgres";
}

// THREADS: one.
class PostgresCluster {
 public:
  // Started when it is asked for first; goes with the process.
  static PostgresCluster& Get() {
    static auto& cluster = *new PostgresCluster();
    return cluster;
  }

  // Why there is none; empty: there is one.
  const std::string& missing() const { return missing_; }
  // Installed, and yet it does not run.
  bool broken() const { return broken_; }

  // The address of a new database.
  std::string NewDatabase() {
    const std::string name =
        absl::StrCat("test", static_cast<int>(getpid()), "_", ++databases_);
    auto connection = PostgresConnection::Connect(address_);
    EXPECT_THAT(connection, optfarm::testing::IsOk());
    EXPECT_THAT((*connection)
                    ->Run(absl::StrCat("CREATE DATABASE ", name).c_str(),
                          absl::Minutes(1))
                    .status(),
                optfarm::testing::IsOk());
    return absl::StrReplaceAll(address_, {{"/postgres?", "/" + name + "?"}});
  }

  void Crash() { Script("crash"); }
  // REQUIRES: Crash, after which Start makes it a primary again.
  void StartAsReplica() { Script("start --replica"); }
  void Start() { address_ = Script("start"); }

 private:
  PostgresCluster() {
    const auto folder = MakeTemporaryFolder("pg");
    if (!folder.ok()) {
      missing_ = folder.status().ToString();
      broken_ = true;
      return;
    }
    folder_ = *folder;
    address_ =
        Script(absl::StrCat("start --watch ", static_cast<int>(getpid())));
  }

  std::string Script(const std::string& action) {
    std::string words = action;
    const size_t end = std::min(words.find(' '), words.size());
    words.insert(end, " " + folder_);
    const std::string command =
        absl::StrCat(testing::SourcePath("tests/support/postgres_cluster"), " ",
                     words, " 2>&1");
    std::string output;
    FILE* const pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t got = 0; pipe != nullptr &&
                         (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      output.append(buffer, got);
    }
    const int status = pipe == nullptr ? -1 : pclose(pipe);
    if (status != 0) {
      missing_ = output.empty() ? "the script failed" : output;
      broken_ = !WIFEXITED(status) || WEXITSTATUS(status) != 3;
    }
    return std::string(absl::StripAsciiWhitespace(output));
  }

  std::string folder_;
  std::string address_;
  std::string missing_;
  bool broken_ = false;
  int databases_ = 0;
};

// A store that reads and writes without the lease, beside the one that has it.
class PostgresStoreBeside final : public SqlMetadataStore {
 public:
  PostgresStoreBeside(const std::string& uri, int64_t results_bytes)
      : SqlMetadataStore(ConnectionsTo(uri), results_bytes) {}
  absl::Status Backup(const std::string&) override {
    return absl::UnimplementedError("");
  }

 private:
  static SqlConnections ConnectionsTo(const std::string& uri) {
    const auto database = [&] {
      return std::make_unique<PostgresDatabase>(
          PostgresDatabaseOptions{uri, nullptr, true});
    };
    SqlConnections connections;
    connections.writer = database();
    connections.readers.push_back(database());
    connections.results_reader = database();
    return connections;
  }
};

// A place for stores of one engine.
class EnginePlace {
 public:
  explicit EnginePlace(Engine engine) : engine_(engine) {}
  ~EnginePlace() {
    if (!folder_.empty()) {
      EXPECT_THAT(RemoveAll(folder_), optfarm::testing::IsOk());
    }
  }
  EnginePlace(const EnginePlace&) = delete;
  EnginePlace& operator=(const EnginePlace&) = delete;

  // Why there can be none on this machine; empty: it is made.
  std::string Make() {
    if (engine_ == Engine::kPostgres) {
      PostgresCluster& cluster = PostgresCluster::Get();
      EXPECT_FALSE(cluster.broken()) << cluster.missing();
      if (!cluster.missing().empty()) return cluster.missing();
      path_ = cluster.NewDatabase();
      return "";
    }
    auto folder = MakeTemporaryFolder("store");
    EXPECT_THAT(folder, optfarm::testing::IsOk());
    folder_ = *std::move(folder);
    path_ = JoinPath(folder_, "optfarm.db");
    return "";
  }

  Engine engine() const { return engine_; }
  // Of the file, or the database's address.
  const std::string& path() const { return path_; }
  // SQLite's only.
  const std::string& folder() const { return folder_; }

  // Everything that is kept; the small stores in files of their own.
  absl::StatusOr<PostgresStores> OpenAll(absl::Time now) const {
    if (engine_ == Engine::kPostgres) {
      PostgresOptions options;
      options.uri = path_;
      options.holder = "a test";
      return OpenPostgresStores(std::move(options), now);
    }
    PostgresStores stores;
    OPTFARM_ASSIGN_OR_RETURN(stores.store, OpenSqliteMetadataStore(path_, now));
    OPTFARM_ASSIGN_OR_RETURN(stores.tokens,
                             OpenSqliteTokenStore(path_ + ".tokens", now));
    OPTFARM_ASSIGN_OR_RETURN(stores.webhooks,
                             OpenSqliteWebhookStore(path_ + ".webhooks", now));
    OPTFARM_ASSIGN_OR_RETURN(stores.audit,
                             OpenSqliteAuditStore(path_ + ".audit", now));
    OPTFARM_ASSIGN_OR_RETURN(stores.tunes,
                             OpenSqliteTuneStore(path_ + ".tunes", now));
    return stores;
  }
  absl::StatusOr<std::unique_ptr<MetadataStore>> Open(absl::Time now) const {
    if (engine_ == Engine::kSqlite) return OpenSqliteMetadataStore(path_, now);
    OPTFARM_ASSIGN_OR_RETURN(PostgresStores stores, OpenAll(now));
    return std::move(stores.store);
  }
  // Another one while one is open.
  absl::StatusOr<std::unique_ptr<MetadataStore>> OpenBeside(
      absl::Time now, int64_t results_bytes) const {
    if (engine_ == Engine::kSqlite) {
      return OpenSqliteMetadataStore(path_, now, results_bytes);
    }
    return std::make_unique<PostgresStoreBeside>(path_, results_bytes);
  }
  // A connection for statements.
  std::unique_ptr<SqlDatabase> Connect() const {
    if (engine_ == Engine::kPostgres) {
      return std::make_unique<PostgresDatabase>(
          PostgresDatabaseOptions{path_, nullptr, true});
    }
    auto db = SqliteDatabase::Open(path_);
    EXPECT_THAT(db, optfarm::testing::IsOk());
    return *std::move(db);
  }

 private:
  const Engine engine_;
  std::string folder_;
  std::string path_;
};

}  // namespace optfarm::storage

// Makes the place, or skips the test and says why.
#define OPTFARM_MAKE_PLACE(place)                               \
  do {                                                          \
    if (const std::string why = (place).Make(); !why.empty()) { \
      GTEST_SKIP() << why;                                      \
    }                                                           \
  } while (false)

#define OPTFARM_INSTANTIATE_ENGINES(test)                            \
  INSTANTIATE_TEST_SUITE_P(                                          \
      , test, ::testing::Values(Engine::kSqlite, Engine::kPostgres), \
      EngineName)

#endif  // OPTFARM_TESTS_STORAGE_ENGINES_H_
