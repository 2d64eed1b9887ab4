{{- define "turnout.labels" -}}
{ app.kubernetes.io/name: turnout, app.kubernetes.io/component: {{ . }} }
{{- end }}

{{/* The image of the proxy. */}}
{{- define "turnout.image" -}}
{{ .Values.image.registry }}/turnout{{ if ne .Values.backend "all" }}-{{ .Values.backend }}{{ end }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{/* docs/security.md says what for. */}}
{{- define "turnout.capabilities" -}}
{{- $needed := dict
  "nft" "[NET_ADMIN]"
  "iptables" "[NET_ADMIN, NET_RAW]"
  "ipvs" "[NET_ADMIN, NET_RAW]"
  "ebpf" "[BPF, NET_ADMIN, PERFMON, SYS_ADMIN, SYS_PTRACE]"
  "userspace" "[NET_ADMIN, NET_BIND_SERVICE]"
  "all" "[BPF, NET_ADMIN, NET_RAW, PERFMON, SYS_ADMIN, SYS_PTRACE]" -}}
{{ get $needed . }}
{{- end }}

{{- define "turnout.usesIptables" -}}
{{ if has . (list "iptables" "ipvs" "all") }}yes{{ end }}
{{- end }}

{{- define "turnout.usesEbpf" -}}
{{ if has . (list "ebpf" "all") }}yes{{ end }}
{{- end }}

{{- define "turnout.nodeName" -}}
- name: NODE_NAME
  valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
{{- end }}

{{- define "turnout.probes" -}}
startupProbe:
  httpGet: { {{ with .host }}host: {{ . }}, {{ end }}path: /livez, port: {{ .port }} }
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: { {{ with .host }}host: {{ . }}, {{ end }}path: /livez, port: {{ .port }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { {{ with .host }}host: {{ . }}, {{ end }}path: {{ .ready }}, port: {{ .port }} }
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{/* The node-state server, without arguments, volumes and requests. */}}
{{- define "turnout.serverContainer" -}}
name: server
image: {{ .Values.image.registry }}/turnout-serve{{ with .Values.server.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
securityContext:
  runAsUser: 65532
  runAsGroup: 65532
  runAsNonRoot: true
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  seccompProfile: { type: RuntimeDefault }
  capabilities: { drop: [ALL] }
{{ include "turnout.probes" (dict "host" "127.0.0.1" "port" 12092 "ready" "/readyz") }}
resources: {{ toYaml .Values.server.resources | nindent 2 }}
{{- end }}
