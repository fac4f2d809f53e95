// optfarm.v1.Failure out of an absl::Status: whose trouble is it?

#ifndef OPTFARM_RPC_FAILURE_H_
#define OPTFARM_RPC_FAILURE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::rpc {

// The farm's trouble, to be tried again, whatever the code.
// REQUIRES: !status.ok().
v1::Failure InternalFailure(const absl::Status& status);

// What was sent cannot work; never tried again.
// REQUIRES: !status.ok().
v1::Failure UserFailure(const absl::Status& status);

// For an error of the engine, which has only the user's files and settings to
// work with: codes that speak about them (InvalidArgument, NotFound,
// FailedPrecondition, AlreadyExists, OutOfRange, Unimplemented, DataLoss,
// PermissionDenied, ResourceExhausted) are the user's, all others the farm's. A
// full disk is the farm's although it is a ResourceExhausted. REQUIRES:
// !status.ok().
v1::Failure EngineFailure(const absl::Status& status);

}  // namespace optfarm::rpc

#endif  // OPTFARM_RPC_FAILURE_H_
