#!/bin/sh
# Plans in one step of a pipeline and applies exactly that plan in a later one, after somebody has read it:
#
#   ./pipeline.sh plan     ends with 0 when there is nothing to do, with 2 when plan.txt is to be read
#   ./pipeline.sh apply    makes what plan.txt says, or nothing: the plan is refused where the world moved on
#
# It wants QOD_SERVER, QOD_TOKEN and TF_VAR_ana_password. The plan has no secrets: passwords are read again. TERRAFORM
# names the program to run, such as tofu.
set -eu
cd "$(dirname "$0")"
: "${TERRAFORM:=terraform}"

case "${1:-}" in
plan)
  code=0
  "$TERRAFORM" plan -input=false -out=plan.tfplan -detailed-exitcode >/dev/null || code=$?
  [ "$code" -ne 1 ] || exit 1
  "$TERRAFORM" show -no-color plan.tfplan | tee plan.txt
  exit "$code"
  ;;
apply)
  "$TERRAFORM" apply -input=false plan.tfplan
  # Whoever applies again has nothing to do.
  "$TERRAFORM" plan -input=false -detailed-exitcode >/dev/null
  ;;
*)
  echo "usage: $0 plan|apply" >&2
  exit 64
  ;;
esac
