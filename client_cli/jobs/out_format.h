// The formats that a user wants the result of a job in: --out_format, and the
// name of --out_graph.

#ifndef OPTFARM_CLIENT_CLI_JOBS_OUT_FORMAT_H_
#define OPTFARM_CLIENT_CLI_JOBS_OUT_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

struct OutFormats {
  // What to ask a job for, each once; empty: nothing but its graph.
  std::vector<v1::ModelFormat> formats;
  // That of the file --out_graph; PB where it is not given.
  v1::ModelFormat out_graph = v1::PB;
};

// What values of --out_format ("onnx", "pb,tflite") and the file --out_graph
// ("" for none) ask for. The end of the file's name decides; where it says
// nothing, the one format of --out_format does.
// ERRORS: marked kUsage for an unknown format, several formats for a file whose
// name names none, and a file of a format that --out_format does not list.
absl::StatusOr<OutFormats> ParseOutFormats(
    const std::vector<std::string>& values, const std::string& out_graph);

// "pb", "onnx", "tflite". REQUIRES: one of these.
std::string FormatWord(v1::ModelFormat format);

// Whether the file --out_graph can be written; OK for "".
// ERRORS: marked kUsage for a folder; those of files.
absl::Status CheckOutGraph(const std::string& out_graph);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_OUT_FORMAT_H_
