// The server as an object: stores, scheduler, services and threads put
// together. main.cc makes one from flags; tests make one in their own process.

#ifndef OPTFARM_SERVER_SERVER_H_
#define OPTFARM_SERVER_SERVER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "http/request_reader.h"
#include "rpc/channel.h"
#include "server/access/call_room.h"
#include "server/access/connection_limits.h"
#include "server/access/project_limits.h"
#include "server/delivery/event_hub.h"
#include "server/delivery/job_list_feed.h"
#include "server/delivery/trace_exporter.h"
#include "server/delivery/webhooks.h"
#include "server/scheduling/scheduling_policy.h"
#include "server/services/transfer_watch.h"
#include "server/upkeep/blob_engine.h"
#include "server/upkeep/retention.h"
#include "storage/sql/metadata_store.h"

namespace optfarm::server {

struct ServerOptions {
  // See data_dir.h. Required.
  std::string data_dir;
  BlobEngineOptions blobs;
  // Where records are kept: "postgresql://USER@HOST/DATABASE",
  // "sqlite:PATH", or empty for SQLite in the data folder.
  std::string database;
  // Called when another server has taken over a PostgreSQL database and this
  // one can write no more, from any thread; it says so.
  std::function<void(const std::string&)> on_database_lost;
  // HOST:PORT where the other servers of this farm reach this one's gRPC door;
  // empty: there are no others. Needs a PostgreSQL database, and blobs that all
  // of them see.
  std::string advertise;
  // PEM file of who signed the certificates of all servers; for TLS between
  // them.
  std::string servers_ca;
  // HOST:PORT; port 0 takes a free one. Hosts that are not loopback need a
  // token.
  std::string grpc_address = "127.0.0.1:7070";
  // HOST:PORT of the HTTP door; empty: there is none.
  std::string http_address;
  http::Limits http_limits;
  // Of the gRPC door.
  ConnectionLimits::Options connections;
  // The operator's token, which may do everything. Empty: nobody needs one.
  std::string token;
  // Both doors speak TLS with these; empty: neither does. With a client_ca,
  // workers and agents must bring certificates, and others may.
  rpc::ServerTls tls;
  // UNITS: bytes of the largest blob, and of all together. A bound on the total
  // makes the store a cache: unused blobs are evicted when it is reached.
  int64_t max_blob_bytes = int64_t{4} << 30;
  int64_t max_store_bytes = std::numeric_limits<int64_t>::max();
  // UNITS: bytes of disk that uploads leave free.
  int64_t reserved_free_bytes = int64_t{256} << 20;
  // UNITS: bytes of memory for the numbers of results.
  int64_t results_bytes = storage::kResultsBytes;
  WebhookOptions webhooks;
  TraceExportOptions traces;
  // How long a connection to the gRPC door may take to say that it speaks
  // HTTP/2, with TLS where there is TLS.
  absl::Duration handshake_time = absl::Seconds(20);
  // How long a connection to the gRPC door may have no call; clients connect
  // again unseen.
  absl::Duration idle_connection = absl::Minutes(5);
  // Longest time calls under way may take to end after Shutdown.
  absl::Duration grace = absl::Seconds(10);
  SchedulingOptions scheduling;
  RetentionOptions retention;
  // Of all projects but those that have limits of their own.
  ProjectLimits project_limits;
  LimitsByProject limits_by_project;
  TransferWatch::Options transfers;
  CallRoom::Options calls;
  EventHub::Options watches;
  JobListFeed::Options lists;
  // OWNERSHIP: outlives the server.
  Clock* clock = RealClock();
};

// THREADS: all methods are safe.
class Server {
 public:
  // Opens the data folder, takes over its jobs and begins to listen. One of
  // several servers (see `advertise`) leads, or stands by until the leader is
  // gone.
  // ERRORS: InvalidArgument for a bad address; FailedPrecondition when the
  // folder is in use, is newer than this server, or when a token is needed;
  // Unavailable when the address cannot be bound or the bucket does not answer;
  // DataLoss for a damaged database.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);

  virtual ~Server() = default;

  // HOST:PORT with the port that was really taken.
  virtual std::string address() const = 0;
  // The same of the HTTP door; empty without one.
  virtual std::string http_address() const = 0;

  // Stops: says NOT_SERVING and drains, lets calls under way end within the
  // grace, then breaks off the rest. Returns when nothing runs any more.
  virtual void Shutdown() = 0;

  // Puts other limits of single projects into force. Changes, and what the
  // server began with, are in the audit log.
  virtual void SetProjectLimits(LimitsByProject limits) = 0;

  // Reads the TLS files again; nothing changes where they do not fit together.
  // The HTTP door uses them from now on, the gRPC door, which looks at them
  // itself, within a few seconds. ERRORS: those of Start for the files.
  virtual absl::Status ReloadTls() = 0;

  // Looks at deadlines and held calls now. Tests that move a fake clock call
  // this.
  virtual void Wake() = 0;

 protected:
  Server() = default;
};

// True for 127.0.0.0/8, [::1], localhost and unix sockets.
bool IsLoopback(const std::string& address);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVER_H_
