# Starts Valkey with the passwords that stand in the environment: it reads no variables by itself.
set -eu
umask 077
sed -e "s/\${VALKEY_HEADGATE_PASSWORD}/$VALKEY_HEADGATE_PASSWORD/" \
  -e "s/\${VALKEY_ADMISSION_PASSWORD}/$VALKEY_ADMISSION_PASSWORD/" \
  -e "s/\${VALKEY_SCHEDULER_PASSWORD}/$VALKEY_SCHEDULER_PASSWORD/" \
  /etc/valkey/valkey-users.conf >/tmp/users.conf
exec valkey-server /etc/valkey/valkey.conf
