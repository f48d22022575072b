#include "runtime/library/callers_peer.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/base/command_line.h"
#include "runtime/config/composition_check.h"
#include "runtime/daemon/peer_options.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/device_request.h"

namespace gossamer {

absl::StatusOr<std::unique_ptr<CallersPeer>> CallersPeer::Open(
    const std::vector<std::string>& options, ParameterLayout layout) {
  if (layout.size() == 0) {
    return absl::InvalidArgumentError("the players have no parameters");
  }
  PeerFlags flags;
  Command program(
      {.name = "join", .about = "Joins a fleet.", .run = [] { return 0; }});
  AddPeerOptions(program, flags);
  std::vector<const char*> words = {"join"};
  for (const std::string& option : options) words.push_back(option.c_str());
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::string help,
      program.Parse(static_cast<int>(words.size()), words.data()));
  if (!help.empty()) return absl::InvalidArgumentError(help);
  GOSSAMER_ASSIGN_OR_RETURN(PeerProcessOptions process, ResolveOptions(flags));
  if (!process.config.game().has_caller()) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.config,
        ": the game of this run is gossamer's own, and gossamer-peer plays it; "
        "a program that joins needs game { caller {} }"));
  }
  return std::unique_ptr<CallersPeer>(
      new CallersPeer(std::move(process), std::move(layout)));
}

CallersPeer::CallersPeer(PeerProcessOptions options, ParameterLayout layout)
    : rounds_(options.config.rounds()),
      seed_(options.config.seed()),
      peers_(static_cast<int>(options.config.peers())),
      caller_(std::make_unique<Caller>(std::move(layout))),
      options_(std::move(options)) {
  // The place of the parameters decides, and until now that is the host.
  options_.config.mutable_resources()->set_device("cpu");
}

CallersPeer::~CallersPeer() {
  if (!thread_.joinable()) return;
  Leave();
  // The runtime may still ask for the program's state.
  while (caller_->Await(absl::Hours(1)) == Caller::Turn::kRuntimes) {
    caller_->TakeStateFailure().IgnoreError();
  }
  thread_.join();
  if (!process_->cut_short()) return;
  // Waits that never end still refer to the process, and by its game to the
  // caller: neither is ever destroyed.
  process_.release();
  caller_.release();
}

void CallersPeer::UseMemory(float* parameters) {
  caller_->UseMemory({parameters, caller_->layout().size()});
  cuda_ = nullptr;
  options_.config.mutable_resources()->set_device("cpu");
}

absl::Status CallersPeer::UseCudaMemory(float* parameters, int index) {
  if (index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cuda:", index, " is no GPU; they are numbered from 0"));
  }
  const std::string why = WhyOnHost(options_.config);
  if (!why.empty()) return absl::InvalidArgumentError(why);
  const absl::StatusOr<ChosenDevice> chosen =
      ChooseDevice(index, /*ordinal=*/0, OpenCudaLibrary);
  if (!chosen.ok()) {
    return absl::InvalidArgumentError(chosen.status().message());
  }
  cuda_ = chosen->library;
  caller_->UseMemory({parameters, caller_->layout().size(), chosen->device});
  options_.config.mutable_resources()->set_device(absl::StrCat("cuda:", index));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CallersPeer::HashOfParameters() const {
  const auto hash = [](std::span<const float> values) {
    return RngKey(Crc32c(std::as_bytes(values))).Bits(0);
  };
  const DeviceSpan<float> parameters = caller_->parameters();
  if (cuda_ == nullptr) return hash(HostSpan(parameters));
  GOSSAMER_ASSIGN_OR_RETURN(
      const DeviceQueue queue,
      DeviceQueue::Open(*cuda_->kernels, *cuda_->calls, parameters.device));
  const std::vector<float> values = queue.ToHost(parameters);
  GOSSAMER_RETURN_IF_ERROR(queue.status());
  return hash(values);
}

absl::Status CallersPeer::Start() {
  GOSSAMER_ASSIGN_OR_RETURN(options_.initial_parameters_hash,
                            HashOfParameters());
  options_.game = [this](const DeviceQueue& queue) {
    // During a step the process is there: it waits for the step.
    return caller_->MakeGame(queue, [this] {
      return CallerProgress{process_->id(), process_->round(),
                            process_->members()};
    });
  };
  MutexLock lock(&mu_);
  process_ = std::make_unique<PeerProcess>(std::move(options_));
  if (stops_) process_->RequestStop();
  if (leaves_) process_->RequestLeave();
  thread_ = std::thread([this, process = process_.get()] {
    const absl::Status status = process->Run();
    caller_->End(status);
  });
  return absl::OkStatus();
}

void CallersPeer::Stop() {
  MutexLock lock(&mu_);
  stops_ = true;
  if (process_ != nullptr) process_->RequestStop();
}

void CallersPeer::Leave() {
  caller_->Leave();
  MutexLock lock(&mu_);
  leaves_ = true;
  if (process_ != nullptr) process_->RequestLeave();
}

}  // namespace gossamer
