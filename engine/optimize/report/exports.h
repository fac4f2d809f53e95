// The result of a job in the formats that the job asks for.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_EXPORTS_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_EXPORTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/export/export_model.h"
#include "engine/graph/graph.h"
#include "engine/optimize/samples/local_data.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Writes the graph into `folder` in each of the formats but PB, which is
// written anyway, and adds an entry for each to `report`, with the reasons
// where a format cannot hold it: that is no error. When no format of the list
// can be had, a gate that did not pass is added.
// `report` has the graph's inputs and outputs; `metadata` goes into files that
// have a place for it. ERRORS: Unimplemented for a
// format that this program does not know; those of files.
absl::Status WriteExports(const graph::Graph& graph,
                          const std::vector<v1::ModelFormat>& formats,
                          const std::string& folder,
                          const formats::TfliteMetadata& metadata,
                          v1::Report* report);

// Whether all of the formats can hold the graph, PB aside.
bool CanBeWritten(const graph::Graph& graph,
                  const std::vector<v1::ModelFormat>& formats,
                  const v1::Report& report);

// What is known of the samples: how pictures are normalized, and the names of
// the classes, where the labels' file has one for each element of the first
// output's last dimension.
formats::TfliteMetadata MetadataOf(const v1::Preprocessing& preprocessing,
                                   const LocalData& data,
                                   const v1::Report& report);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_EXPORTS_H_
