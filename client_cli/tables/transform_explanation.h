// What each transform of a list did, in full: numbers, changes by op, and every
// match that was left alone with the reason. `graph transform --explain` prints
// it.

#ifndef OPTFARM_CLIENT_CLI_TABLES_TRANSFORM_EXPLANATION_H_
#define OPTFARM_CLIENT_CLI_TABLES_TRANSFORM_EXPLANATION_H_

#include <string>

#include "absl/types/span.h"
#include "client_cli/tables/table.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

// A paragraph for each step. Names from the model are made printable.
std::string ExplainAsText(absl::Span<const v1::TransformStats> steps);

// An array of TransformStats as JSON, fields named as in the contract.
std::string ExplainAsJson(absl::Span<const v1::TransformStats> steps);

// One row for each match that was left alone: step, node, reason.
Table SkippedTable(absl::Span<const v1::TransformStats> steps);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_TRANSFORM_EXPLANATION_H_
