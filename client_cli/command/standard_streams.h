// "-" as the name of a file: standard input is copied to a file before a
// command reads it, and a file that a command wrote is copied to standard
// output, so that commands need to know of files alone.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_STANDARD_STREAMS_H_
#define OPTFARM_CLIENT_CLI_COMMAND_STANDARD_STREAMS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_cli/command/interrupt_cleanup.h"

namespace optfarm::client_cli {

// Its files are gone when it is. REQUIRES: made before other threads.
class StandardStreams {
 public:
  // `in` and `out` are file descriptors, which stay open.
  StandardStreams(int in, int out) : in_(in), out_(out) {}

  // The file that holds all of standard input.
  // ERRORS: FailedPrecondition for a second file, and for a terminal;
  // ResourceExhausted above 4 GB; those of files.
  absl::StatusOr<std::string> ReadInput();

  // A file to write. ERRORS: FailedPrecondition for a second one.
  absl::StatusOr<std::string> MakeOutput();

  // MakeOutput was called: what is printed should go elsewhere.
  bool has_output() const { return !output_.empty(); }

  // Copies the file to standard output; nothing where it was not written, as
  // after a failed job. ERRORS: those of files.
  absl::Status CopyOutput();

 private:
  absl::StatusOr<std::string> FileNamed(const std::string& name);

  const int in_, out_;
  std::string folder_, input_, output_;
  std::unique_ptr<InterruptCleanup> cleanup_;
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_STANDARD_STREAMS_H_
